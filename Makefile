# SPDX-License-Identifier: Apache-2.0
# Coxswain. `make help` says what there is. Everything built goes to $(BUILD).
#
#   BUILD=dir         where to build (default: build)
#   DEVELOPER=1       warnings are errors
#   SANITIZE=address,undefined | thread
#   CUDA=1            with GPUs; CUDA_HOME (/usr/local/cuda) has nvcc, headers and the static runtime
#   CUDA=emulated     with GPUs that the processor plays (tests/gpu/emulated): to run kernels where there is no GPU
#   XLA=1             with programs, which run through a PJRT plugin (docs/programs.md)
#   PLAIN=dir         with CUDA: a build without, of the same sources, whose objects are taken where CUDA makes no difference
#   V=1               show whole commands

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.SUFFIXES:
BUILD ?= build
CC := $(if $(filter default,$(origin CC)),cc,$(CC))
CLANG ?= clang
PKG_CONFIG ?= pkg-config
DEVELOPER ?= 0
SANITIZE ?=
V ?= 0
PREFIX ?= /usr/local
export CC PKG_CONFIG

Q := $(if $(filter 1,$(V)),,@)
say = $(if $(filter 1,$(V)),@:,@printf '  %-5s %s\n' $(1) $(2))

# As many jobs as there are processors, unless the caller said how many.
ifeq ($(MAKELEVEL)$(filter -j%,$(MAKEFLAGS)),0)
MAKEFLAGS += -j$(shell nproc)
endif

# ---------------------------------------------------------------- flags
WARNINGS := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wold-style-definition -Wvla -Wundef \
            -Wpointer-arith -Wwrite-strings -Wcast-align -Wformat=2 -Wimplicit-fallthrough
ifeq ($(DEVELOPER),1)
WARNINGS += -Werror
endif
# Contracting a*b+c would make results depend on the compiler.
LANGUAGE := -std=c11 -D_GNU_SOURCE -I. -pthread -ffp-contract=off
OPTIMISE ?= -O2 -g
HARDENING := -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2 -fstack-protector-strong -fstack-clash-protection -fPIE
LDFLAGS += -pie -Wl,-z,relro,-z,now,-z,noexecstack -Wl,--as-needed -pthread

# Reports name functions and lines; nothing else is asked of their debug information.
ifneq ($(SANITIZE),)
OPTIMISE := -O1 -g1 -fno-omit-frame-pointer -fno-sanitize-recover=undefined -fsanitize=$(SANITIZE)
HARDENING := -fPIE
LDFLAGS += -fsanitize=$(SANITIZE)
endif

# ---------------------------------------------------------------- CUDA
# Driver, cuBLAS and NCCL are looked for when the worker runs (docs/gpus.md).
CUDA ?= 0
CUDA_HOME ?= /usr/local/cuda
CUDA_ARCHITECTURES ?= 80 90 100
# A fused multiply-add in an instruction, where the processor that plays the GPUs has one: the same bits as fmaf's.
emulated_machine := $(if $(shell grep -sm 1 '^flags.* fma ' /proc/cpuinfo),-mfma)
emulated_include := -Itests/gpu/emulated/include -DNCCL_FILE_NUMBER=0 -DCUDNN_FILE_NUMBER=0
ifeq ($(CUDA),1)
cuda_left_out := worker/device/without_cuda.c
cuda_sources := $(wildcard worker/device/cuda/*.cu)
cuda_include := -isystem $(CUDA_HOME)/include
libs_cuda := $(firstword $(wildcard $(CUDA_HOME)/lib64/libcudart_static.a $(CUDA_HOME)/lib/libcudart_static.a)) -lrt -ldl
# Machine code for each, and for GPUs to come what their driver compiles.
cuda_targets := $(foreach a,$(CUDA_ARCHITECTURES),-gencode arch=compute_$(a),code=sm_$(a)) \
                -gencode arch=compute_$(lastword $(CUDA_ARCHITECTURES)),code=compute_$(lastword $(CUDA_ARCHITECTURES))
NVCC = $(CUDA_HOME)/bin/nvcc -std=c++17 -O3 -I. $(cuda_targets) --fmad=false \
       -Xcompiler -fPIE,-Wall,-Wextra,-fno-exceptions,-fno-rtti,-fno-threadsafe-statics $(if $(filter 1,$(DEVELOPER)),$(cuda_strict))
# Registers that are spilled, and arrays that are indexed at run time, are memory traffic that nobody has counted: errors.
cuda_strict = -Werror all-warnings -Xptxas -warn-spills$(comma)-warn-lmem-usage
comma := ,
else ifeq ($(CUDA),emulated)
# GPUs that the processor plays: no toolkit, no GPU, no speed.
cuda_left_out := worker/device/without_cuda.c
cuda_sources := $(wildcard worker/device/cuda/*.cu)
cuda_include := $(emulated_include)
cuda_runtime := $(addprefix tests/gpu/emulated/,block.c environment.c fault.c graph.c runtime.c stream.c unwritten.c)
cuda_libraries := $(BUILD)/libcublas.so.0 $(BUILD)/libcublasLt.so.0 $(BUILD)/libcudnn.so.0 $(BUILD)/libnccl.so.0
cuda_environment = LD_LIBRARY_PATH=$(abspath $(BUILD)) EMULATED_GPUS_SHARED=1
LDFLAGS += -rdynamic
NVCC = $(CXX) -x c++ -std=c++17 $(OPTIMISE) $(emulated_machine) -ffp-contract=off -I. $(cuda_include) -include cuda_runtime.h -fPIE -Wall -Wextra \
       -Wno-unknown-pragmas -fno-exceptions -fno-rtti -fno-threadsafe-statics -fno-extern-tls-init \
       $(if $(filter 1,$(DEVELOPER)),-Werror)
else
cuda_left_out := worker/device/cuda/%
endif

# ---------------------------------------------------------------- XLA
# With XLA=1 the worker runs programs (docs/programs.md) through a PJRT plugin, which it opens when it runs.
XLA ?= 0
ifeq ($(XLA),1)
xla_left_out := worker/xla/without_pjrt.c
pjrt_include := $(shell scripts/pjrt-header)
ifeq ($(pjrt_include),)
$(error XLA=1 needs the header of PJRT)
endif
xla_include := -isystem $(pjrt_include)
else
xla_left_out := worker/xla/pjrt_client.c
endif

# ---------------------------------------------------------------- libraries of the system
modules_common := libcjson yaml-0.1 libmicrohttpd libpcre2-8 libpng libjpeg
modules_loop := libcurl libssl libcrypto expat
modules_store := sqlite3
modules_worker := zlib
modules := $(modules_common) $(modules_loop) $(modules_store) $(modules_worker)

# Asked once, and only when a recipe needs the answer: `make test` may have to install the libraries first.
once = $(eval $(1) := $(2))$($(1))
module_cflags = $(call once,module_cflags,$(shell $(PKG_CONFIG) --cflags $(modules) 2>/dev/null))
module_versions = $(call once,module_versions,$(shell $(PKG_CONFIG) --modversion $(modules) 2>/dev/null))
libs_common = $(call once,libs_common,$(shell $(PKG_CONFIG) --libs $(modules_common) 2>/dev/null) -lm)
libs_loop = $(call once,libs_loop,$(shell $(PKG_CONFIG) --libs $(modules_loop) 2>/dev/null))
libs_store = $(call once,libs_store,$(shell $(PKG_CONFIG) --libs $(modules_store) 2>/dev/null))
libs_criterion = $(call once,libs_criterion,$(shell $(PKG_CONFIG) --libs criterion 2>/dev/null))
# Not asked of pkg-config: gRPC (its .pc file drags in what only a static link needs, and takes a second); oneDNN has none.
libs_worker := -lgrpc -lgpr -lz -ldnnl -lssl -lcrypto $(libs_cuda)

# Chart.js, which draws the curves of `cox ui`; operator/cli/ui/assets.c has the path, too.
chart_library = $(wildcard /usr/share/javascript/chart.js/chart.min.js)

# What an object is made of is written down under both names that BUILD may give it, below here and from the root: whoever gave
# one name and then the other would keep what is out of date. nvcc takes one name only.
DEPENDENCIES = -MMD -MP $(foreach name,$(patsubst $(CURDIR)/%,%,$@) $(abspath $@),-MT $(name))
CPPFLAGS_OURS = $(DEPENDENCIES) $(LANGUAGE) $(module_cflags) $(cuda_include) $(xla_include)
COMPILE = $(CC) $(CPPFLAGS_OURS) $(WARNINGS) $(OPTIMISE) $(HARDENING) $(CFLAGS)
BANNED := -include common/banned.h

# ---------------------------------------------------------------- rooms
# Every .c in a room's folders goes into the room's library, except main.c. A room is followed by what it stands on;
# `system` are the system's libraries for a program made of it.
ROOMS := worker storage cli controller standalone kube common

folder_common := common
folder_kube := operator/kube
folder_controller := operator/controller
folder_standalone := operator/standalone
folder_cli := operator/cli
folder_worker := worker
folder_storage := storage

rooms_common := common
rooms_kube := kube common
rooms_controller := controller kube common
rooms_standalone := standalone common
rooms_cli := cli kube common
rooms_worker := worker common
rooms_storage := storage common

system_common = $(libs_loop) $(libs_common)
system_kube = $(libs_loop) $(libs_common)
system_controller = $(libs_loop) $(libs_common)
system_standalone = $(libs_store) $(libs_loop) $(libs_common)
system_cli = $(libs_loop) $(libs_common) -lz
system_worker = $(libs_worker) $(libs_loop) $(libs_common)
system_storage = $(libs_loop) $(libs_common)
system_all = $(libs_worker) $(libs_store) $(libs_loop) $(libs_common)

find_sources = $(sort $(shell find $(1) -name '*.c' 2>/dev/null))
# The generator is a program of its own, inside common/.
generator_folder := common/job/generate
# What the embedded control plane loads into foreign programs: a library of its own, of this one folder.
preload_folder := operator/standalone/preload
room_sources = $(filter-out %/main.c $(generator_folder)/% $(preload_folder)/% $(cuda_left_out) $(xla_left_out),$(call find_sources,$(folder_$(1))))
$(foreach r,$(ROOMS),$(eval sources_$(r) := $(call room_sources,$(r))))
kernels_worker := $(cuda_sources) $(cuda_runtime)

# With PLAIN objects that know nothing of CUDA come from there, where an ordinary build has made them (tests/gpu/build).
PLAIN ?=
plain = $(if $(PLAIN),$(filter-out worker/device/cuda/% worker/xla/%,$(filter common/%.c worker/%.c,$(1))))
objects_in = $(addprefix $(1)/obj/,$(addsuffix .o,$(basename $(2))))
objects = $(call objects_in,$(PLAIN),$(call plain,$(1))) $(call objects_in,$(BUILD),$(filter-out $(call plain,$(1)),$(1)))
library = $(patsubst %,$(BUILD)/lib/lib%.a,$(1))

# The rooms that files use, told from what they include; in link order.
used_by = $(sort $(foreach r,$(ROOMS),$(if $(findstring "$(folder_$(r))/,$(foreach f,$(1),$(file < $(f)))),$(rooms_$(r)))))
rooms_of = $(filter $(call used_by,$(1)),$(ROOMS))

# ---------------------------------------------------------------- compiling
FUZZ := $(BUILD)/fuzz

# What every object depends on besides its sources: rewritten only when it would differ.
CONFIGURATION := $(BUILD)/configuration
configuration_text = $(COMPILE) | $(LDFLAGS) | $(NVCC) | $(module_versions) $(chart_library)

.PHONY: always
always:
$(CONFIGURATION): always
	@mkdir -p $(@D)
	@{ $(CC) --version | head -n 1; echo '$(configuration_text)'; } >$@.$$$$; \
	if cmp -s $@.$$$$ $@; then rm $@.$$$$; \
	else echo "Building in $(BUILD) with:"; \
	     scripts/dependencies report build && mv $@.$$$$ $@ || { rm -f $@.$$$$; exit 1; }; fi

$(BUILD)/configuration-test: | $(CONFIGURATION)
	@scripts/dependencies report test
	@touch $@

# A unit test spends its time in what it tests. Its own code is not optimised, which takes a third of the time to compile, except where it
# computes much itself.
computing_tests := tests/unit/worker/comm/collective.c
unit_flags = $(if $(filter tests/unit/%,$(filter-out $(computing_tests),$<)),-O0 -U_FORTIFY_SOURCE)

$(BUILD)/obj/tests/%.o: tests/%.c $(CONFIGURATION)
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(COMPILE) $(unit_flags) -c $< -o $@

# The files of the page of `cox ui` are in this object, and Chart.js.
$(BUILD)/obj/operator/cli/ui/assets.o $(FUZZ)/obj/operator/cli/ui/assets.o: $(wildcard operator/cli/ui/*.html operator/cli/ui/*.css operator/cli/ui/*.js) $(chart_library)

# In kernels a square root that may set errno keeps its loop from going over vectors, and so does arithmetic for one of two cases that
# might trap in the other; the bits are the same.
kernel_flags = $(if $(filter worker/device/cpu/%,$<),-fno-math-errno -fno-trapping-math) $(product_flags)
# What the address sanitizer sees of a pointer in the loops of products, where a sanitized test spends most of its time, is not asked twice.
product_flags = $(if $(findstring undefined,$(SANITIZE)),$(if $(filter worker/device/cpu/gemm_kernel_%,$<),$(pointer_checks_once)))
pointer_checks_once := -fno-sanitize=null,alignment,object-size,pointer-overflow

# A first build takes minutes: it says how many of its files are compiled.
is_first := $(if $(wildcard $(BUILD)/obj),,1)
compiled = $(foreach r,$(ROOMS),$(sources_$(r))) $(foreach p,$(PROGRAMS),$(folder_$(program_room_$(p)))/main.c) $(call find_sources,$(generator_folder))
count = $(if $(is_first),$(eval counted += .) [$(words $(counted))/$(words $(compiled))])

$(BUILD)/obj/%.o: %.c $(CONFIGURATION)
	$(call say,CC,'$<$(count)')
	@mkdir -p $(@D)
	$(Q)$(COMPILE) $(kernel_flags) $(BANNED) -c $< -o $@

$(BUILD)/obj/%.o: %.cu $(CONFIGURATION)
	$(call say,NVCC,$<)
	@mkdir -p $(@D)
	$(Q)$(NVCC) $(if $(filter 1,$(CUDA)),-MMD -MP,$(DEPENDENCIES)) -c $< -o $@

$(BUILD)/libcublas.so.0: tests/gpu/emulated/cublas.c $(wildcard tests/gpu/emulated/*.h) $(CONFIGURATION)
	$(call say,LINK,$@)
	$(Q)$(CC) $(LANGUAGE) $(cuda_include) $(WARNINGS) -O3 -g $(emulated_machine) -fPIC -shared $< -o $@ -lm

$(BUILD)/libcublasLt.so.0: $(addprefix tests/gpu/emulated/,cublaslt.c cublas.c) $(wildcard tests/gpu/emulated/*.h) $(CONFIGURATION)
	$(call say,LINK,$@)
	$(Q)$(CC) $(LANGUAGE) $(cuda_include) $(WARNINGS) -O3 -g $(emulated_machine) -fPIC -shared $(filter %.c,$^) -o $@ -lm

$(BUILD)/libcudnn.so.0: tests/gpu/emulated/cudnn.c $(wildcard tests/gpu/emulated/*.h) worker/device/cuda/cudnn.h $(CONFIGURATION)
	$(call say,LINK,$@)
	$(Q)$(CC) $(LANGUAGE) $(cuda_include) $(WARNINGS) -O3 -g $(emulated_machine) -fPIC -shared $< -o $@ -lm

$(BUILD)/libnccl.so.0: $(wildcard tests/gpu/emulated/nccl*.c tests/gpu/emulated/*.h) worker/device/cuda/nccl.h $(CONFIGURATION)
	$(call say,LINK,$@)
	$(Q)$(CC) $(LANGUAGE) $(cuda_include) $(WARNINGS) -O2 -g -fPIC -pthread -shared $(filter %.c,$^) -o $@

# A library is also made anew when a source is gone, or its objects come from elsewhere.
define room_rules
$(BUILD)/lib/$(1).sources: always
	@mkdir -p $$(@D)
	@echo '$(PLAIN) $$(sources_$(1))' | cmp -s - $$@ || echo '$(PLAIN) $$(sources_$(1))' >$$@
$(call library,$(1)): $(call objects,$(sources_$(1)) $(kernels_$(1))) $(BUILD)/lib/$(1).sources
	$$(call say,AR,$$@)
	$$(Q)rm -f $$@; $$(AR) rcs $$@ $$(filter %.o,$$^)
endef
$(foreach r,$(ROOMS),$(eval $(call room_rules,$(r))))

link = $(CC) $(LDFLAGS) $(filter %.o %.a,$^)

# ---------------------------------------------------------------- programs
program_room_coxswain-operator := controller
program_room_coxswain-standalone := standalone
program_room_cox := cli
program_room_coxswain-worker := worker
program_room_coxswain-storage := storage
PROGRAMS := coxswain-operator coxswain-standalone cox coxswain-worker coxswain-storage
program_files := $(addprefix $(BUILD)/,$(PROGRAMS))

define program_rules
$(BUILD)/$(1): $(call objects,$(folder_$(2))/main.c) $(call library,$(rooms_$(2)))
	$$(call say,LINK,$$@)
	$$(Q)$$(link) $$(system_$(2)) -o $$@
endef
$(foreach p,$(PROGRAMS),$(eval $(call program_rules,$(p),$(program_room_$(p)))))

PRELOAD := $(BUILD)/coxswain-pod.so
preload_sources := $(call find_sources,$(preload_folder))
$(PRELOAD): $(preload_sources) common/contract/environment.h $(CONFIGURATION)
	$(call say,LINK,$@)
	$(Q)$(CC) $(LANGUAGE) $(WARNINGS) -O2 -g -fPIC -fstack-protector-strong -shared -Wl,-z,relro,-z,now,-z,noexecstack \
		$(CFLAGS) $(preload_sources) -o $@

$(BUILD)/coxswain-generate: $(call objects,$(call find_sources,$(generator_folder))) $(call library,common)
	$(call say,LINK,$@)
	$(Q)$(link) $(libs_common) -o $@

# ---------------------------------------------------------------- tests
# One Criterion program a room, of everything under tests/unit/<its folder>.
define unit_rules
unit_sources_$(1) := $(call find_sources,tests/unit/$(folder_$(1)))
$(BUILD)/tests/unit-$(1): $(call objects,$(call find_sources,tests/unit/$(folder_$(1)))) $(call library,$(rooms_$(1))) \
		| $(BUILD)/configuration-test
	$$(call say,LINK,$$@)
	@mkdir -p $$(@D)
	$$(Q)$$(link) $$(libs_criterion) $$(system_$(1)) -o $$@
.PHONY: unit-$(1)
unit-$(1): $(BUILD)/tests/unit-$(1) ## NOHELP
	$$<
endef
$(foreach r,$(ROOMS),$(eval $(call unit_rules,$(r))))
unit_programs := $(foreach r,$(ROOMS),$(if $(unit_sources_$(r)),$(BUILD)/tests/unit-$(r)))

# Criterion and the thread sanitizer only work together with some help.
ifeq ($(SANITIZE),thread)
$(unit_programs): $(call objects,tests/sanitizers/thread_arena.c)
endif

# Programs under tests/: a folder or a single .c each, linked with the rooms that its files include.
# $(1) name, $(2) sources, $(3) further libraries
define test_program_rules
$(BUILD)/tests/$(1): $(call objects,$(2)) $(call library,$(call rooms_of,$(2))) | $(BUILD)/configuration-test
	$$(call say,LINK,$$@)
	@mkdir -p $$(@D)
	$$(Q)$$(link) $(3) $$(system_all) -o $$@
endef

faultproxy_sources := $(wildcard tests/faultproxy/*.c)
ifneq ($(faultproxy_sources),)
$(eval $(call test_program_rules,faultproxy,$(faultproxy_sources),))
TOOLS := $(BUILD)/tests/faultproxy
endif

$(eval $(call test_program_rules,corpus-expand,tests/corpus/expand.c,))
TOOLS += $(BUILD)/tests/corpus-expand

clock_shift := $(BUILD)/tests/clock-shift.so
slow_disk := $(BUILD)/tests/slow-disk.so
TOOLS += $(clock_shift) $(slow_disk)
$(clock_shift): tests/clockshift/clock_shift.c $(CONFIGURATION)
$(slow_disk): tests/slowdisk/slow_disk.c $(CONFIGURATION)
$(clock_shift) $(slow_disk):
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(LANGUAGE) $(WARNINGS) -O2 -g -fPIC -shared $(CFLAGS) $< -o $@

$(eval $(call test_program_rules,gpu-test,$(filter-out tests/gpu/bench%.c,$(wildcard tests/gpu/*.c)),))
$(eval $(call test_program_rules,gpu-bench,$(wildcard tests/gpu/bench*.c),))

integration_sources := $(wildcard tests/integration/*.c)
integration_programs := $(patsubst tests/integration/%.c,$(BUILD)/tests/integration-%,$(integration_sources))
$(foreach s,$(integration_sources),$(eval $(call test_program_rules,integration-$(basename $(notdir $(s))),$(s),$$(libs_criterion))))
integration_scripts := $(sort $(wildcard tests/integration/test_*.sh))

bench_sources := $(wildcard tests/bench/bench_*.c)
bench_programs := $(patsubst tests/bench/%.c,$(BUILD)/tests/%,$(bench_sources))
$(foreach s,$(bench_sources),$(eval $(call test_program_rules,$(basename $(notdir $(s))),$(s),)))

$(eval $(call test_program_rules,operator-load,tests/bench/operator/load.c,))
$(eval $(call test_program_rules,operator-audit,tests/bench/operator/audit.c,))
$(eval $(call test_program_rules,operator-imitate,tests/bench/operator/imitate.c,))
$(eval $(call test_program_rules,delay_line,tests/cost/delay_line.c,))
$(eval $(call test_program_rules,cost_model,$(filter-out tests/cost/delay_line.c,$(wildcard tests/cost/*.c)),-lm))

# Every parser of outside input under libFuzzer, with what it needs of the rooms, compiled by clang with its sanitizers. What they need is
# told by the symbols of the ordinary objects.
FUZZ_SECONDS ?= 5
FUZZ_COMPILE = $(CLANG) $(CPPFLAGS_OURS) -Wall -Wno-unknown-warning-option -O1 -gline-tables-only -fno-omit-frame-pointer
fuzz_sources := $(wildcard tests/fuzz/fuzz_*.c)
fuzz_programs := $(patsubst tests/fuzz/%.c,$(FUZZ)/%,$(fuzz_sources))
fuzz_objects = $(patsubst %.c,$(FUZZ)/obj/%.o,$(1))

$(FUZZ)/obj/%.o: %.c $(CONFIGURATION)
	$(call say,FUZZ,$<)
	@mkdir -p $(@D)
	$(Q)$(FUZZ_COMPILE) -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined $(BANNED) -c $< -o $@

fuzz_plain := $(call objects,$(foreach r,$(ROOMS),$(sources_$(r))))
$(FUZZ)/needed.mk: $(call objects,$(fuzz_sources)) $(fuzz_plain) $(foreach r,$(ROOMS),$(BUILD)/lib/$(r).sources) scripts/needed-objects
	@mkdir -p $(@D)
	$(Q)needed=$$(scripts/needed-objects $(call objects,$(fuzz_sources)) -- $(fuzz_plain)) && echo fuzz_needed := $$needed >$@
ifneq ($(filter fuzz check-fuzz,$(MAKECMDGOALS)),)
include $(FUZZ)/needed.mk
endif

define fuzz_room_rules
$(FUZZ)/lib/lib$(1).a: $(call fuzz_objects,$(if $(fuzz_needed),$(filter $(fuzz_needed:$(BUILD)/obj/%.o=%.c),$(sources_$(1))),$(sources_$(1)))) $(BUILD)/lib/$(1).sources
	@mkdir -p $$(@D)
	$$(Q)rm -f $$@; $$(AR) rcs $$@ $$(filter %.o,$$^)
endef
$(foreach r,$(ROOMS),$(eval $(call fuzz_room_rules,$(r))))

define fuzz_rules
$(FUZZ)/$(basename $(notdir $(1))): $(call fuzz_objects,$(1)) $(patsubst %,$(FUZZ)/lib/lib%.a,$(call rooms_of,$(1)))
	$$(call say,LINK,$$@)
	$$(Q)$$(CLANG) -fsanitize=fuzzer,address,undefined -pthread -Wl,--as-needed $$(filter %.o %.a,$$^) $$(system_all) -o $$@
endef
$(foreach s,$(fuzz_sources),$(eval $(call fuzz_rules,$(s))))

# ---------------------------------------------------------------- targets
.PHONY: help all tests run test benches bench bench-peers fuzz generate deps install uninstall clean format lint
.PHONY: check-format check-generate check-hardening check-sanitize check-sanitize-address check-sanitize-thread
.PHONY: check-fuzz check-distros

help: ## this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  %-16s %s\n", $$1, $$2 }' Makefile

# kubectl finds its plugins on PATH, which may be the build's own folder.
$(BUILD)/kubectl-cox: $(BUILD)/cox
	$(Q)ln -sf cox $@

all: $(program_files) $(PRELOAD) $(cuda_libraries) $(BUILD)/deploy $(BUILD)/kubectl-cox ## build the programs

# Where programs look for the CRD and the examples, wherever BUILD is.
$(BUILD)/deploy: | $(CONFIGURATION)
	@ln -sfn $(CURDIR)/deploy $@

# DEMO=preempt kills a worker half-way.
run: ## install what is missing, build, and train on real digits in front of your eyes (DEMO=preempt: survive a kill)
	@scripts/dependencies ensure build
	@$(MAKE) --no-print-directory all
	@$(BUILD)/cox demo $(if $(filter preempt,$(DEMO)),--preempt)

# The fuzz targets are compiled, though not linked, so that no change of a struct leaves them behind.
tests: all $(unit_programs) $(integration_programs) $(TOOLS) $(call objects,$(fuzz_sources)) $(BUILD)/tests/gpu-test $(BUILD)/tests/gpu-bench

# Most of them wait: two go at once for each processor.
test: ## install what is missing, build, run unit and integration tests
	@scripts/dependencies ensure build test
	@$(MAKE) --no-print-directory tests
	@BUILD=$(abspath $(BUILD)) TEST_JOBS=$$((2 * $$(nproc))) tests/run $(unit_programs) $(integration_programs) $(integration_scripts)

benches: $(bench_programs) all

bench: ## measure this machine (ratios to its own sgemm)
	@scripts/dependencies ensure build
	@$(MAKE) --no-print-directory benches
	@for b in $(bench_programs); do BUILD=$(abspath $(BUILD)) $$b || exit 1; done

bench-peers: ## the same beside PyTorch and TensorFlow, from PyPI in two venvs
	@scripts/dependencies ensure build
	@$(MAKE) --no-print-directory benches
	@BUILD=$(abspath $(BUILD)) tests/bench/peers/run

# BENCH_ROUNDS, BENCH_SECONDS, BENCH_MODELS, BENCH_ONLY: tests/bench/programs/programs.py tells of them.
.PHONY: bench-programs
bench-programs: all ## LeNet and a small Llama by programs beside our own graph, JAX, PyTorch and Keras (packages from PyPI): rates, first steps, memory; 15 minutes
	@BUILD=$(abspath $(BUILD)) tests/bench/programs/run

# BENCH_OPERATOR=full: with 10,000 jobs and 100,000 pods, too; tests/bench/operator/run tells of other sizes.
.PHONY: bench-operator
bench-operator: all $(addprefix $(BUILD)/tests/operator-,load audit imitate) ## the operator at scale beside its peer, on a real control plane with KWOK
	@BUILD=$(abspath $(BUILD)) tests/bench/operator/run

# BENCH_JOBS: 10,000 of each; BENCH_API=cluster: those of a real API server
.PHONY: bench-page
bench-page: all ## the page of cox ui with 10,000 runs and with 10,000 TrainingJobs in a headless Chromium: first list, memory, frames, updates; five minutes
	@BUILD=$(abspath $(BUILD)) tests/bench/page/run

# BENCH_SEEDS: more than 20; BENCH_OPTUNA=: without Optuna, which takes minutes; BENCH_KATIB=1: bench-sweeps-cluster beside Katib, built from its
# Go module, with BENCH_TRIALS trials each.
.PHONY: bench-sweeps bench-sweeps-digits bench-sweeps-grid bench-sweeps-cluster
bench-sweeps: $(addprefix $(BUILD)/tests/bench_,tpe early_stopping population) ## TPE's values beside Optuna's (in a venv); what early stopping and populations save
	@BUILD=$(abspath $(BUILD)) tests/bench/sweeps/run
bench-sweeps-digits: all ## what ASHA saves on the digits, beside Optuna and Ray Tune with PyTorch (BENCH_TRIALS: 64): an hour
	@BUILD=$(abspath $(BUILD)) tests/bench/sweeps/run digits
bench-sweeps-grid: all ## ASHA with pauses and without beside grid search on the digits, 64 trials each (BENCH_SEEDS: 3): 15 minutes
	@BUILD=$(abspath $(BUILD)) tests/bench/sweeps/run grid
bench-sweeps-cluster: all ## 1,000 trials of a second on a real API server with KWOK's nodes: memory, writes, trials a minute
	@BUILD=$(abspath $(BUILD)) tests/bench/sweeps/run cluster

.PHONY: gpu-test gpu-sanitize gpu-bench
gpu-test: $(BUILD)/tests/gpu-test $(BUILD)/coxswain-worker $(cuda_libraries) ## with CUDA=1, where there are GPUs: every operation and whole models against the CPU, crews
	@BUILD=$(abspath $(BUILD)) TEST_SECONDS=3600 $(cuda_environment) tests/run $< tests/gpu/check-real

gpu-sanitize: $(BUILD)/tests/gpu-test ## with CUDA=1: gpu-test under NVIDIA's compute-sanitizer, where that is installed
	@BUILD=$(abspath $(BUILD)) CUDA_HOME=$(CUDA_HOME) TEST_SECONDS=7200 $(cuda_environment) tests/run tests/gpu/sanitize

.PHONY: cuda-toolkit check-cuda check-machines check-programs check-tpu
cuda-toolkit: ## nvcc, headers, cuBLAS and NCCL from PyPI, once (0.8 GB); says where: make CUDA=1 CUDA_HOME=that
	@scripts/cuda-toolkit

check-cuda: all ## its kernels on GPUs that the processor plays; compiles the worker for real ones (CUDA_HOME, or the toolkit from PyPI)
	@BUILD=$(abspath $(BUILD)) TEST_SECONDS=2400 TEST_JOBS=2 tests/run tests/gpu/check-emulated tests/gpu/check-machines tests/gpu/check-run tests/gpu/check-bench tests/gpu/check-build

check-machines: all ## what check-cuda has of machines that lack GPUs or NCCL, with the scenarios that take minutes, too
	@BUILD=$(abspath $(BUILD)) MACHINES=all TEST_SECONDS=2400 tests/run tests/gpu/check-machines

check-programs: all ## models exported from Python, and our own layers, through two PJRT plugins: bits, kills, JAX's and PyTorch's own results (packages from PyPI, once)
	@BUILD=$(abspath $(BUILD)) TEST_SECONDS=1600 tests/run tests/programs/check tests/programs/test_layers.sh tests/programs/test_compiled.sh

check-tpu: all ## presets and exported programs compiled ahead of time for five generations of TPUs, by libtpu from PyPI: memory, refusals
	@BUILD=$(abspath $(BUILD)) TEST_SECONDS=500 tests/run tests/tpu/check

gpu-bench: $(BUILD)/tests/gpu-bench $(BUILD)/coxswain-worker ## with CUDA=1: GPT-2, ResNet-50, LeNet and small ones beside PyTorch, MFU, memory, first step, checkpoints
	@BUILD=$(abspath $(BUILD)) PYTHONDONTWRITEBYTECODE=1 python3 tests/gpu/peers/bench.py

# GPU_PROFILE: another of tests/gpu/bench_trainee.c
.PHONY: gpu-profile
GPU_PROFILE ?= gpt2-124m
gpu-profile: $(BUILD)/tests/gpu-bench ## with CUDA=1: where a step's time goes, by operation and shape, with TFLOP/s (GPU_PROFILE=resnet50)
	@$< $(GPU_PROFILE) 0 0.9 profile

.PHONY: check-cluster check-nodes check-classes check-kueue check-schedulers check-s3 check-chart check-e2e check-e2e-smoke check-images check-workflows
check-cluster: all $(BUILD)/tests/corpus-expand ## on a real control plane, built from Go modules: verdicts, conformance, the operator with its rights, the chart
	@BUILD=$(abspath $(BUILD)) TEST_SECONDS=900 tests/cluster/check

check-nodes: all ## what check-cluster has of nodes: sick, about to be removed, flapping, dead
	@BUILD=$(abspath $(BUILD)) TEST_SECONDS=900 tests/cluster/check $(abspath tests/cluster/test_nodes.sh tests/cluster/test_sick_nodes.sh)

check-classes: all ## what check-cluster has of training classes
	@BUILD=$(abspath $(BUILD)) TEST_SECONDS=900 tests/cluster/check $(abspath tests/cluster/test_classes.sh)

check-kueue: all ## jobs in the queues of the real Kueue manager, built from its Go module
	@BUILD=$(abspath $(BUILD)) TEST_SECONDS=1800 tests/run tests/cluster/kueue/test_kueue.sh tests/cluster/kueue/test_multikueue.sh

check-schedulers: all ## gangs that the real schedulers of Volcano and the scheduler plugins place, built from their Go modules
	@BUILD=$(abspath $(BUILD)) TEST_SECONDS=1800 tests/run tests/cluster/schedulers/test_gangs.sh

check-e2e: ## on two real nodes (root): images from the Dockerfile, chart, jobs; pods, operators, nodes and API server lost
	@BUILD=$(abspath $(BUILD)) tests/e2e/check

check-e2e-smoke: ## the least of it: installed, a pod deleted, a node drained
	@BUILD=$(abspath $(BUILD)) tests/e2e/check tests/e2e/smoke.sh

check-images: ## the images built twice, in different places (root): are they the same?
	@tests/e2e/check-images

check-workflows: ## actionlint on the workflow files
	@scripts/check-workflows

# ARM64_ROOMS: which rooms' unit tests; those of the worker take an hour under emulation.
ARM64_ROOMS ?= $(ROOMS)
.PHONY: check-arm64
check-arm64: ## everything compiled for ARM processors; unit tests of ARM64_ROOMS (all) under qemu (root, for the emulator's registration)
	@scripts/dependencies ensure build arm64
	+@root=$$(scripts/arm64-root) || { [ $$? = 3 ] && echo "0 passed, 0 failed, 1 skipped"; exit; }; \
	export PKG_CONFIG_SYSROOT_DIR=$$root PKG_CONFIG_LIBDIR=$$root/usr/lib/aarch64-linux-gnu/pkgconfig:$$root/usr/share/pkgconfig QEMU_LD_PREFIX=$$root; \
	$(MAKE) --no-print-directory BUILD=$(BUILD)/arm64 CC="aarch64-linux-gnu-gcc --sysroot=$$root" all $(ARM64_ROOMS:%=$(BUILD)/arm64/tests/unit-%) && \
	tests/arm64/check $(ARM64_ROOMS:%=$(BUILD)/arm64/tests/unit-%)

check-s3: all $(clock_shift) ## object storage with a real S3 server, built from its Go module: faults, kills, rotated credentials
	@BUILD=$(abspath $(BUILD)) TEST_SECONDS=600 tests/s3/check

.PHONY: bench-s3
bench-s3: all $(BUILD)/tests/bench_checkpoint ## objects read from and written to an S3 server on this machine, compared with curl; saves to a bucket and to a disk
	@BUILD=$(abspath $(BUILD)) tests/s3/bench

check-chart: ## helm lint, and the chart with several sets of values
	@scripts/check-chart

.PHONY: cost-model check-cost-model
cost-model: $(BUILD)/tests/cost_model ## what the cost model predicts for 8 to 1,024 workers, in tables; its picture to $(BUILD)/efficiency.svg
	@$< tables tests/cost/parameters
	@$< picture tests/cost/parameters >$(BUILD)/efficiency.svg

check-cost-model: all $(addprefix $(BUILD)/tests/,cost_model delay_line bench_allreduce) ## the cost model beside crews in network namespaces with slow links (root)
	@BUILD=$(abspath $(BUILD)) tests/cost/check

.PHONY: check-parity
PARITY_PYTHON ?= python3
check-parity: all ## beside PyTorch (PARITY_PYTHON, default python3): gradients, losses of 100 steps, exported weights
	@if $(PARITY_PYTHON) -c 'import torch, numpy' 2>/dev/null; then $(PARITY_PYTHON) tests/parity/parity.py $(BUILD)/coxswain-worker; \
	else echo "skip parity: $(PARITY_PYTHON) has no PyTorch; name one that has: make check-parity PARITY_PYTHON=…"; fi

.PHONY: check-python
check-python: ## the Python package coxswain-train: its tests and types; installs its packages into ~/.cache/coxswain once
	@BUILD=$(abspath $(BUILD)) scripts/check-python

.PHONY: check-first-hour
check-first-hour: all ## from files of one's own to a score: cox generate and cox run, as make test has it
	@BUILD=$(abspath $(BUILD)) tests/run tests/integration/test_first_hour.sh

.PHONY: check-sweeps
sweep_suites := sweep_*|training_sweep|trial_*|early_stopping|parzen|population|promotion|suggestion|tpe
check-sweeps: all $(addprefix $(BUILD)/tests/unit-,common controller cli) ## TrainingSweeps: unit tests of their planner and of cox sweep, and the integration tests, as make test has them
	@BUILD=$(abspath $(BUILD)) CRITERION_TEST_PATTERN='@($(sweep_suites))/*' tests/run $(filter $(BUILD)/tests/unit-%,$^) \
		$(addprefix tests/integration/test_,sweep.sh cox_sweep.sh early_stopping.sh promotion.sh population.sh)

.PHONY: check-page
check-page: all ## the page of cox ui in a headless Chromium, which it installs if it can
	@BUILD=$(abspath $(BUILD)) TEST_SECONDS=500 tests/run tests/page/check

# The pictures of the page in docs are those that its test has taken.
page_pictures := ui:job-light ui-sweep:search-light ui-crew:crew ui-layers:layers-text ui-classifier:use-classifier
.PHONY: page-pictures
page-pictures: check-page ## the pictures of the page in docs, taken anew
	@for pair in $(page_pictures); do cp $(BUILD)/page/$${pair#*:}.png docs/images/$${pair%%:*}.png || exit 1; done

.PHONY: chaos
chaos: all ## CHAOS_KILLS (1000) kills of random members over every strategy, and other faults: what was lost
	@PYTHONDONTWRITEBYTECODE=1 BUILD=$(abspath $(BUILD)) python3 tests/chaos/chaos.py

.PHONY: check-resume
check-resume: all ## every strategy goes on from every other's checkpoint
	@PYTHONDONTWRITEBYTECODE=1 BUILD=$(abspath $(BUILD)) TEST_SECONDS=1800 tests/run tests/chaos/resume.py

.PHONY: check-frameworks
check-frameworks: all ## the foreign examples with PyTorch, Transformers and JAX from PyPI (or TORCH_PYTHON, JAX_PYTHON; TF_PYTHON), and kills
	@BUILD=$(abspath $(BUILD)) TEST_SECONDS=1800 tests/run tests/frameworks/check.sh

.PHONY: check-examples
check-examples: all ## every manifest of deploy/examples through cox run: it learns, its status is true, nothing is left behind
	@BUILD=$(abspath $(BUILD)) TEST_SECONDS=3600 tests/run tests/examples/check.py

.PHONY: strategies strategies-text
strategies: all ## one model under every strategy: loss, accuracy, rate, bytes sent, steps lost to a kill, and whether all is as promised
	@BUILD=$(abspath $(BUILD)) tests/strategies/run
	@[ -n "$$STRATEGIES$$STRATEGIES_TEXT$$STRATEGIES_MODEL" ] || $(MAKE) --no-print-directory strategies-text

strategies-text: all ## a small GPT on a text under PeerToPeer and local steps: how near they come to MultiWorkerMirrored
	@BUILD=$(abspath $(BUILD)) tests/strategies/text

.PHONY: check-stragglers
check-stragglers: all ## the pace of every strategy with one worker ten times slower, and who names it
	@BUILD=$(abspath $(BUILD)) tests/stragglers/asleep.py
	@BUILD=$(abspath $(BUILD)) tests/stragglers/run

.PHONY: crash-points
crash-points: all $(BUILD)/tests/faultproxy ## the operator killed before and after every write of a job's life, and of a sweep's
	@BUILD=$(abspath $(BUILD)) TEST_SECONDS=1800 tests/run tests/chaos/crash-points.sh tests/chaos/sweep-crash-points.sh

.PHONY: schedules
schedules: all $(BUILD)/tests/faultproxy ## SCHEDULES (200) random lives of jobs behind a faulty API server, with an operator that is killed
	@BUILD=$(abspath $(BUILD)) TEST_SECONDS=$$(($${SCHEDULES_SECONDS:-1200} + 900)) tests/run tests/chaos/schedules.py

fuzz: $(fuzz_programs) ## build the fuzz targets, one for each parser of outside input

check-fuzz: fuzz ## FUZZ_SECONDS (5) of fuzzing for each parser
	@FUZZ_SECONDS=$(FUZZ_SECONDS) scripts/check-fuzz $(FUZZ)

check-sanitize: ## unit tests and real workers under the address, undefined and thread sanitizers
	@status=0; for kind in address thread; do \
		$(MAKE) --no-print-directory check-sanitize-$$kind || status=1; done; exit $$status

sanitized = $(MAKE) --no-print-directory BUILD=$(BUILD)/$(1) SANITIZE=$(2) sanitized-tests
check-sanitize-address:
	+@$(call sanitized,sanitize-address,address$(,)undefined)

# Only the worker has threads.
check-sanitize-thread:
	+@$(call sanitized,sanitize-thread,thread) SANITIZED_ROOMS=worker

SANITIZED_ROOMS ?= $(ROOMS)
sanitized_programs := $(filter $(SANITIZED_ROOMS:%=$(BUILD)/tests/unit-%),$(unit_programs))
sanitizer_options := ASAN_OPTIONS=detect_stack_use_after_return=1:malloc_context_size=3 LSAN_OPTIONS=suppressions=$(CURDIR)/tests/sanitizers/leaks \
	UBSAN_OPTIONS=print_stacktrace=1 \
	TSAN_OPTIONS=halt_on_error=1:abort_on_error=1:die_after_fork=0:ignore_noninstrumented_modules=1:suppressions=$(CURDIR)/tests/sanitizers/races
.PHONY: sanitized-tests
sanitized-tests: $(sanitized_programs) $(BUILD)/coxswain-worker
	@$(sanitizer_options) BUILD=$(abspath $(BUILD)) TEST_SECONDS=1700 CASE_SECONDS=900 TEST_JOBS=2 tests/run $(sanitized_programs) tests/sanitizers/test_crew.sh

, := ,

# The chart's copies of what deploy/ says, and of its own defaults, which templates cannot read elsewhere.
chart_files := charts/coxswain/files
chart_copies := deploy/crd/coxswain.dev_trainingjobs.yaml:crd.yaml deploy/crd/coxswain.dev_trainingsweeps.yaml:sweep_crd.yaml \
                deploy/crd/coxswain.dev_clustertrainingclasses.yaml:cluster_class_crd.yaml \
                deploy/crd/coxswain.dev_trainingclasses.yaml:class_crd.yaml \
                deploy/rbac/role.yaml:role.yaml \
                deploy/rbac/lease_role.yaml:lease_role.yaml deploy/rbac/user_roles.yaml:user_roles.yaml \
                deploy/components/progress/role.yaml:progress_role.yaml \
                deploy/components/dashboard/coxswain.json:dashboard.json charts/coxswain/values.yaml:values.yaml

generate: $(BUILD)/coxswain-generate ## write the CRD and docs/api.md from the table of fields, and the chart's copies
	$< crd >deploy/crd/coxswain.dev_trainingjobs.yaml
	$< sweep-crd >deploy/crd/coxswain.dev_trainingsweeps.yaml
	$< cluster-class-crd >deploy/crd/coxswain.dev_clustertrainingclasses.yaml
	$< class-crd >deploy/crd/coxswain.dev_trainingclasses.yaml
	$< docs >docs/api.md
	$(foreach c,$(chart_copies),cp $(subst :, $(chart_files)/,$(c)) &&) true

check-generate: $(BUILD)/coxswain-generate ## the CRD, docs/api.md and the chart's copies are what the table says
	@$< crd | diff -u deploy/crd/coxswain.dev_trainingjobs.yaml - && \
		$< sweep-crd | diff -u deploy/crd/coxswain.dev_trainingsweeps.yaml - && \
		$< cluster-class-crd | diff -u deploy/crd/coxswain.dev_clustertrainingclasses.yaml - && \
		$< class-crd | diff -u deploy/crd/coxswain.dev_trainingclasses.yaml - && $< docs | diff -u docs/api.md - && \
		$(foreach c,$(chart_copies),diff -u $(subst :, $(chart_files)/,$(c)) &&) true || \
		{ echo "Run make generate and commit what it writes." >&2; exit 1; }

check-hardening: $(program_files) ## the programs are PIE, RELRO, fortified, …
	@scripts/check-hardening $^

our_c = $(shell git ls-files --cached --others --exclude-standard '*.c' '*.h')

format: ## clang-format every C file
	clang-format -i $(our_c)

check-format: ## every C file is as clang-format writes it
	@clang-format --dry-run --Werror $(our_c)

lint_sources := $(foreach r,$(ROOMS),$(sources_$(r))) $(foreach p,$(PROGRAMS),$(folder_$(program_room_$(p)))/main.c) \
                $(call find_sources,$(generator_folder)) $(preload_sources)
# Where nothing of CUDA is compiled, what calls it is read as emulated GPUs have it.
lint_apart := $(filter-out $(lint_sources),$(wildcard worker/device/cuda/*.c))
tidied := $(patsubst %.c,$(BUILD)/lint/%.tidy,$(lint_sources) $(lint_apart))
define tidy
	$(call say,TIDY,$<)
	@mkdir -p $(@D)
	$(Q)clang-tidy --quiet --warnings-as-errors='*' $< -- $(LANGUAGE) $(module_cflags) $(cuda_include) $(BANNED) 2>$@.log || { cat $@.log; exit 1; }
	@touch $@
endef
$(BUILD)/lint/%.tidy: %.c $(BUILD)/obj/%.o .clang-tidy
	$(tidy)
$(lint_apart:%.c=$(BUILD)/lint/%.tidy): private cuda_include := $(emulated_include)
$(lint_apart:%.c=$(BUILD)/lint/%.tidy): $(BUILD)/lint/%.tidy: %.c $(wildcard worker/device/*.h worker/device/cuda/*.h tests/gpu/emulated/include/*.h) .clang-tidy
	$(tidy)

.PHONY: lint-structure lint-cppcheck lint-shell
lint: lint-structure lint-shell lint-cppcheck $(tidied) ## clang-tidy, cppcheck, shellcheck and the walls between the rooms

lint-structure:
	@scripts/check-structure

lint-cppcheck: $(CONFIGURATION)
	$(call say,CHECK,cppcheck)
	@mkdir -p $(BUILD)/lint
	$(Q)cppcheck --quiet --std=c11 --language=c --cppcheck-build-dir=$(BUILD)/lint --error-exitcode=1 --inline-suppr \
		--suppressions-list=.cppcheck-suppressions -D_GNU_SOURCE -I. $(lint_sources) $(lint_apart)

lint-shell:
	$(call say,CHECK,shellcheck)
	$(Q)shellcheck -x .ci/run tests/run $(wildcard scripts/* tests/integration/*.sh tests/sanitizers/*.sh tests/frameworks/*.sh) \
		$(addprefix tests/cluster/,check get-tools keep manifest-verdicts scheduler-crds with) $(wildcard tests/cluster/*.sh tests/cluster/kueue/*.sh tests/chaos/*.sh) \
		tests/strategies/run tests/strategies/text tests/stragglers/run $(wildcard tests/gpu/check-* tests/gpu/scenarios/*.sh) tests/gpu/build tests/gpu/sanitize tests/programs/check tests/tpu/check tests/page/check $(addprefix tests/e2e/,check check-images control-groups images kind node nodes on-trial plain-pods) \
		$(wildcard tests/e2e/*.sh tests/s3/*.sh) tests/s3/check tests/s3/bench tests/cost/check tests/cost/network.sh $(addprefix tests/bench/operator/,run measure) $(addprefix tests/bench/sweeps/,run cluster katib) tests/bench/programs/run tests/bench/page/run

check-distros: ## make test in fresh Debian 12 and 13 (root, debootstrap, network)
	@scripts/check-distros $(abspath $(BUILD))/distros

deps: ## install everything that build, tests and checks need
	@scripts/dependencies install build test lint fuzz cuda

share := $(DESTDIR)$(PREFIX)/share/coxswain
install: all ## into PREFIX (/usr/local), below DESTDIR
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/lib/coxswain $(share)/crd $(share)/examples/foreign $(share)/examples/kueue $(share)/examples/claims \
		$(share)/examples/sweeps $(share)/examples/volumes/bucket
	install -m 755 $(program_files) $(DESTDIR)$(PREFIX)/bin
	ln -sf cox $(DESTDIR)$(PREFIX)/bin/kubectl-cox
	install -m 644 $(PRELOAD) $(DESTDIR)$(PREFIX)/lib/coxswain
	install -m 644 $(wildcard deploy/crd/*.yaml) $(share)/crd
	install -m 644 $(wildcard deploy/examples/*.yaml) $(share)/examples
	install -m 644 $(wildcard deploy/examples/foreign/*) $(share)/examples/foreign
	install -m 644 $(wildcard deploy/examples/kueue/*.yaml) $(share)/examples/kueue
	install -m 644 $(wildcard deploy/examples/claims/*.yaml) $(share)/examples/claims
	install -m 644 $(wildcard deploy/examples/sweeps/*.yaml) $(share)/examples/sweeps
	install -m 644 $(wildcard deploy/examples/volumes/*.yaml) $(share)/examples/volumes
	install -m 644 $(wildcard deploy/examples/volumes/bucket/*.yaml) $(share)/examples/volumes/bucket

uninstall: ## take it away again
	rm -f $(addprefix $(DESTDIR)$(PREFIX)/bin/,$(PROGRAMS) kubectl-cox)
	rm -rf $(share) $(DESTDIR)$(PREFIX)/lib/coxswain

clean: ## remove everything built
	rm -rf $(BUILD)

-include $(shell find $(BUILD)/obj $(FUZZ)/obj -name '*.d' 2>/dev/null)
