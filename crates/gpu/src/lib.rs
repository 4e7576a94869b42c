//! The device runtime of Tidemill: streams, buffers and kernels, on CUDA and on the host.
