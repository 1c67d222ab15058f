# SPDX-License-Identifier: Apache-2.0
#
# Images of the operator and of the workers, on the current Debian stable.
#
#   docker build --target operator    -t coxswain-operator .
#   docker build --target worker-cpu  -t coxswain-worker .
#   docker build --target worker-cuda -t coxswain-worker:cuda .       (GPUs; the CUDA toolkit comes from PyPI)
#   docker build --target worker-xla-cpu -t coxswain-worker:xla .     (XLA on CPUs, docs/programs.md; the plugin comes from PyPI)
#   docker build --target worker-xla-cuda -t coxswain-worker:xla-cuda .   (XLA on GPUs, docs/programs.md; CUDA and the plugin come from PyPI)
#   docker build --target worker-tpu  -t coxswain-worker:tpu .        (TPUs, docs/tpus.md; libtpu comes from PyPI)
#
# All run as user 65532 on a read-only root. The same sources, base and packages give the same files:
# SOURCE_DATE_EPOCH (--build-arg, with --output rewrite-timestamp=true or buildah --timestamp) settles the rest.
# debian:trixie-slim of August 2026, for all architectures
ARG BASE=debian:trixie-slim@sha256:d7e12182ce18b85b93007c1dedf31f2d29e01ccf3182cc4017c709b6259bc132

# ---------------------------------------------------------------- build
FROM ${BASE} AS toolchain
WORKDIR /src
COPY scripts/dependencies scripts/
RUN apt-get update -qq && apt-get install -y -qq --no-install-recommends make && CI=true scripts/dependencies install build

FROM toolchain AS sources
COPY Makefile ./
COPY common common
COPY operator operator
COPY worker worker
COPY storage storage
COPY deploy deploy

# Programs and, by asking the dynamic linker, what they need: as files for the operator, as packages for the worker.
FROM sources AS build
ARG JOBS
RUN make ${JOBS:+-j$JOBS} all BUILD=/out DEVELOPER=0 && cd /out && strip coxswain-operator cox coxswain-worker coxswain-storage && \
    needed() { ldd "$@" | grep -o '/[^ :]*' | grep -v '^/out' | sort -u; } && \
    packages() { realpath "$@" | sed 's|^/usr||; s|^|*|' | xargs dpkg -S | sed 's/:.*//' | sort -u; } && \
    libraries=$(needed coxswain-operator cox) && \
    root=/operator lib=/operator/usr/lib/$(gcc -dumpmachine) && \
    mkdir -p "$lib" $root/usr/bin $root/etc $root/usr/lib64 && ln -s usr/lib usr/lib64 $root/ && \
    for file in $libraries; do case $file in *ld-linux*) cp -L "$file" "$root/$(realpath --relative-to=/ "$(dirname "$file")")/" ;; *) cp -L "$file" "$lib/" ;; esac; done && \
    cp coxswain-operator cox $root/usr/bin/ && \
    for package in libjs-chart.js $(packages $libraries); do install -D -m 644 /usr/share/doc/$package/copyright $root/usr/share/doc/$package/copyright; done && \
    echo 'coxswain:x:65532:65532::/:/sbin/nologin' >$root/etc/passwd && echo 'coxswain:x:65532:' >$root/etc/group && \
    packages $(needed coxswain-worker coxswain-storage) >/out/packages

FROM toolchain AS toolkit
COPY scripts/cuda-toolkit scripts/
RUN apt-get install -y -qq --no-install-recommends g++ python3-pip && \
    mv "$(COXSWAIN_CUDA=/cuda scripts/cuda-toolkit)" /usr/local/cuda && rm -rf /cuda

# Machine code for these compute capabilities; GPUs of a later one compile the last one's PTX.
FROM toolkit AS build-cuda
COPY Makefile ./
COPY common common
COPY operator operator
COPY worker worker
COPY storage storage
COPY deploy deploy
ARG JOBS
ARG CUDA_ARCHITECTURES="80 90 100"
RUN make ${JOBS:+-j$JOBS} /out/coxswain-worker BUILD=/out DEVELOPER=0 CUDA=1 CUDA_ARCHITECTURES="${CUDA_ARCHITECTURES}" && \
    strip /out/coxswain-worker && mkdir -p /libraries/lib && cd /usr/local/cuda && cp -r licenses /libraries/ && \
    cp lib/libcublas.so.13 lib/libcublasLt.so.13 lib/libnccl.so.2 /libraries/lib/

FROM toolchain AS build-xla
RUN apt-get install -y -qq --no-install-recommends golang-go python3-pip && \
    python3 -m pip download --quiet --no-deps --only-binary=:all: --dest /wheels lammps-jax-pjrt-cpu==0.11.2 && \
    python3 -m zipfile -e /wheels/*.whl /plugin
COPY scripts/pjrt-header scripts/
COPY Makefile ./
COPY common common
COPY operator operator
COPY worker worker
COPY storage storage
COPY deploy deploy
ARG JOBS
RUN make ${JOBS:+-j$JOBS} /out/coxswain-worker BUILD=/out DEVELOPER=0 XLA=1 && strip /out/coxswain-worker

# libtpu has a licence of its own, and is not ours to hand on: whoever builds the image fetches it.
FROM toolchain AS libtpu
RUN apt-get install -y -qq --no-install-recommends python3-pip && \
    python3 -m pip download --quiet --no-deps --only-binary=:all: --dest /wheels libtpu==0.0.52 && \
    python3 -m zipfile -e /wheels/*.whl /plugin && chmod 755 /plugin/libtpu/libtpu.so && chmod 644 /plugin/libtpu/LICENSE

# XLA's plugin for CUDA and the libraries that it opens, beside it as Python's packages have them. NVIDIA's have a licence of their own and are
# not ours to hand on: whoever builds the image fetches them.
FROM toolchain AS xla-cuda
RUN apt-get install -y -qq --no-install-recommends python3-pip && \
    python3 -m pip install --quiet --no-deps --no-compile --only-binary=:all: --target /plugin jax-cuda12-pjrt==0.10.2 \
        nvidia-cublas-cu12==12.9.3.13 nvidia-cuda-cupti-cu12==12.9.79 nvidia-cuda-nvcc-cu12==12.9.86 nvidia-cuda-nvrtc-cu12==12.9.86 \
        nvidia-cuda-runtime-cu12==12.9.79 nvidia-cudnn-cu12==9.28.0.42 nvidia-cufft-cu12==11.4.1.4 nvidia-cusolver-cu12==11.7.5.82 \
        nvidia-cusparse-cu12==12.5.10.65 nvidia-nccl-cu12==2.32.3 nvidia-nvjitlink-cu12==12.9.86 nvidia-nvshmem-cu12==3.8.0

# ---------------------------------------------------------------- operator: these programs and their libraries, nothing else
FROM scratch AS operator
ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="coxswain-operator" \
      org.opencontainers.image.description="Keeps crews of training workers alive on Kubernetes" \
      org.opencontainers.image.licenses="Apache-2.0 AND MIT" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
COPY --from=build /operator /
ENV PATH=/usr/bin
USER 65532:65532
ENTRYPOINT ["coxswain-operator"]

# ---------------------------------------------------------------- workers
FROM ${BASE} AS worker-base
COPY --from=build /out/packages /tmp/packages
RUN apt-get update -qq && xargs apt-get install -y -qq --no-install-recommends </tmp/packages && \
    rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/cache/ldconfig/* /var/log/* /tmp/packages && \
    echo 'coxswain:x:65532:65532::/:/usr/sbin/nologin' >>/etc/passwd && echo 'coxswain:x:65532:' >>/etc/group
USER 65532:65532

FROM worker-base AS worker-cpu
ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="coxswain-worker" \
      org.opencontainers.image.description="Trains neural networks, one worker of a crew" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
COPY --from=build /out/coxswain-worker /out/coxswain-storage /usr/bin/
ENTRYPOINT ["coxswain-worker"]

FROM worker-base AS worker-xla-cpu
ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="coxswain-worker" \
      org.opencontainers.image.description="Trains exported programs through XLA on CPUs, one worker of a crew" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
COPY --from=build-xla /plugin/lammps_jax_pjrt_cpu/pjrt_c_api_cpu_plugin.so /usr/lib/coxswain/pjrt-cpu.so
COPY --from=build-xla /out/coxswain-worker /usr/bin/
COPY --from=build /out/coxswain-storage /usr/bin/
ENV COXSWAIN_PJRT_PLUGIN=/usr/lib/coxswain/pjrt-cpu.so
ENTRYPOINT ["coxswain-worker"]

FROM worker-base AS worker-xla-cuda
ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="coxswain-worker" \
      org.opencontainers.image.description="Trains exported programs through XLA on GPUs, one worker of a crew" \
      org.opencontainers.image.licenses="Apache-2.0 AND LicenseRef-NVIDIA" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
COPY --from=xla-cuda /plugin /usr/lib/coxswain/xla-cuda
COPY --from=build-xla /out/coxswain-worker /usr/bin/
COPY --from=build /out/coxswain-storage /usr/bin/
ENV NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility
ENTRYPOINT ["coxswain-worker"]

FROM worker-base AS worker-tpu
ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="coxswain-worker" \
      org.opencontainers.image.description="Trains exported programs on TPUs, one worker of a crew" \
      org.opencontainers.image.licenses="Apache-2.0 AND LicenseRef-libtpu" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
COPY --from=libtpu /plugin/libtpu/LICENSE /usr/share/doc/libtpu/
COPY --from=libtpu /plugin/libtpu/libtpu.so /usr/lib/libtpu.so
COPY --from=build-xla /out/coxswain-worker /usr/bin/
COPY --from=build /out/coxswain-storage /usr/bin/
ENTRYPOINT ["coxswain-worker"]

# The CUDA runtime is linked in, the driver comes from the node; cuBLAS and NCCL are opened when a job wants them.
FROM worker-base AS worker-cuda
ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="coxswain-worker" \
      org.opencontainers.image.description="Trains neural networks on GPUs, one worker of a crew" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
COPY --from=build-cuda /libraries /usr/local/cuda
COPY --from=build-cuda /out/coxswain-worker /usr/bin/
COPY --from=build /out/coxswain-storage /usr/bin/
ENV LD_LIBRARY_PATH=/usr/local/cuda/lib NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility
ENTRYPOINT ["coxswain-worker"]
