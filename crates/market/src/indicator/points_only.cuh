// Before the other texts: leaves their kernels out.
#define POINTS_ONLY
