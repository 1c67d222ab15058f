# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# array FILE TYPE SHAPE PACKED: a NumPy file of what perl packs, such as 'd<*'; its values come from the standard input
array() {
    perl -e '
        my ($type, $shape, $packed) = @ARGV;
        my $header = "{\x27descr\x27: \x27$type\x27, \x27fortran_order\x27: False, \x27shape\x27: ($shape), }";
        $header .= " " x (63 - (10 + length $header) % 64) . "\n";
        binmode STDOUT;
        print "\x93NUMPY\x01\x00", pack("v", length $header), $header, pack($packed, split " ", join " ", <STDIN>);' \
        "$2" "$3" "$4" >"$1"
}
