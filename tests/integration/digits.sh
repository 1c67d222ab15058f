# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# make_digits: 700 images of 28x28 whose class is a bright bar at one of ten heights, with a little noise, as the IDX files
# `images` and `labels` in the working directory.
make_digits() {
    perl -e '
        srand(1); my ($images, $labels) = ("", "");
        for my $i (0 .. 699) {
            my $class = $i % 10; my @p = map { int rand 60 } 1 .. 784;
            for my $row (2 * $class + 3 .. 2 * $class + 5) { $p[28 * $row + $_] = 200 + int rand 56 for 4 .. 23 }
            $images .= pack "C*", @p; $labels .= chr $class;
        }
        open my $f, ">", "images" or die; binmode $f; print $f pack("N4", 0x803, 700, 28, 28), $images; close $f;
        open $f, ">", "labels" or die; binmode $f; print $f pack("N2", 0x801, 700), $labels;'
}
