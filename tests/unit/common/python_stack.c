/* SPDX-License-Identifier: Apache-2.0 */
#include "common/python_stack.h"

#include <criterion/criterion.h>

#define THREAD "Thread 0x00007f0a8d054b80 (most recent call first):\n"

static const struct {
    const char *what, *text, *line; /* NULL: there is no stack */
} cases[] = {
    {"nothing", "", NULL},
    {"a log", "step 50/100 loss 2.5\n", NULL},
    {"an exception's traceback, whose order is another",
     "Traceback (most recent call last):\n  File \"/a/train.py\", line 6, in <module>\n", NULL},
    {"the last of two threads",
     "step 7\n" THREAD "  File \"/usr/lib/threading.py\", line 324 in wait\n\nCurrent " THREAD
     "  File \"/a/train.py\", line 31 in wait_for_data\n  File \"train.py\", line 60 in <module>\n",
     "wait_for_data (train.py:31) < <module> (train.py:60)"},
    {"the last that has a frame",
     THREAD "  File \"a.py\", line 2 in f\n\nCurrent thread 0x1 (most recent call first):\n  <no Python frame>\n",
     "f (a.py:2)"},
    {"a log that goes on behind it", THREAD "  File \"a.py\", line 2 in f\nsigned off\n", "f (a.py:2)"},
    {"more frames than are wanted",
     THREAD "  File \"a.py\", line 1 in a\n  File \"a.py\", line 2 in b\n  File \"a.py\", line 3 in c\n"
            "  File \"a.py\", line 4 in d\n  File \"a.py\", line 5 in e\n  File \"a.py\", line 6 in f\n"
            "  File \"a.py\", line 7 in g\n",
     "a (a.py:1) < b (a.py:2) < c (a.py:3) < d (a.py:4) < e (a.py:5) < f (a.py:6)"},
    {"a frame that is cut off", THREAD "  File \"a.py\", line 2 in f\n  File \"b.py\", li", "f (a.py:2)"},
    {"control characters", THREAD "  File \"\033[31ma.py\", line 2 in f\r\n", "f (a.py:2)"},
    {"py-spy",
     "step 7\nProcess 1: python3 train.py\nPython v3.11.7 (python3.11)\n\nThread 1 (idle): \"MainThread\"\n"
     "    wait_for_data (train.py:3)\n    <module> (train.py:7)\nThread 42 (idle): \"Thread-1 (sleep)\"\n"
     "    Thread.run (threading.py:982)\n",
     "wait_for_data (train.py:3) < <module> (train.py:7)"},
    {"py-spy without a frame", "Thread 1 (idle): \"MainThread\"\n", NULL},
    {"faulthandler after py-spy",
     "Thread 1 (idle): \"MainThread\"\n    wait (train.py:3)\n" THREAD "  File \"a.py\", line 2 in f\n", "f (a.py:2)"},
    {"gdb",
     "step 7\n#0  0x00007ff3a0eed545 in __GI___clock_nanosleep (clock_id=1, in =2) at clock_nanosleep.c:48\n"
     "#1  0x00007ff3a1315ada in pysleep (timeout=<optimized out>) at timemodule.c:2159\n#2  time_sleep (self=0x0) at "
     "timemodule.c:383\n#3  0x00007ff3a12",
     "__GI___clock_nanosleep < pysleep < time_sleep"},
    {"a log that counts", "\n#0 \n#0 (\n", NULL},
    {"a frozen process",
     "process 1, thread 1 (python3): T (stopped) at do_signal_stop < get_signal, system call 230\n"
     "process 1, thread 42 (python3): T (stopped) at do_signal_stop, system call 202\n",
     "do_signal_stop < get_signal (T (stopped), system call 230)"},
    {"a thread that the kernel holds",
     "process 1, thread 1 (python3): S (sleeping) at futex_wait, system call 202\n"
     "process 1, thread 42 (nfs reader): D (disk sleep) at rpc_wait_bit_killable, system call 0\n",
     "rpc_wait_bit_killable (D (disk sleep), system call 0)"},
    {"a thread that waits", "process 1, thread 1 (a): S (sleeping) at ?, system call ?\n",
     "? (S (sleeping), system call ?)"},
    {"a line of /proc that is cut off", "process 1, thread 1 (a): S (sleeping) at futex_wait", NULL},
    {"a line of /proc in another order", "process 1 at x, system call 1): \n", NULL},
    {"a file in the next line", THREAD "  File \"a.py\n  File \"b.py\", line 2 in f\n", NULL},
};

Test(python_stack, the_main_threads_frames_are_found)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        SCOPED_BUFFER line = BUFFER_INIT(4096);
        cr_expect_eq(python_stack_append(cases[i].text, &line), cases[i].line != NULL, "%s", cases[i].what);
        cr_expect_str_eq(buffer_text(&line), cases[i].line ? cases[i].line : "", "%s", cases[i].what);
    }
}

Test(python_stack, collective_operations_are_recognised)
{
    cr_expect(python_stack_is_collective("all_reduce (distributed_c10d.py:2501) < main (train.py:9)"));
    cr_expect(python_stack_is_collective("wait (a.py:1) < barrier (b.py:2)"));
    cr_expect_not(python_stack_is_collective("wait_for_data (train.py:31) < main (train.py:60)"));
}
