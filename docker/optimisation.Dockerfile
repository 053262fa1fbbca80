# The command for the benchmark optimisation: an image with its extra, and git, and bubblewrap to keep
# agents apart. Builds and tests of a repository run in it. It is no stage of the other file, since the
# older builder builds every stage there, and this one needs Debian's packages.
ARG IMAGE=socratic-runner:full
FROM ${IMAGE}
USER 0:0
RUN apt-get update && apt-get install --yes --no-install-recommends bubblewrap git \
    && rm -rf /var/lib/apt/lists/* /var/cache/apt /var/log/apt /var/log/dpkg.log
USER 10001:10001
