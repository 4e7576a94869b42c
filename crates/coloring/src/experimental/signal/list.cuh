// The lists of neighbours that the kernels of signals read. A thread takes a vertex and adds in the order of its list, as the twin does.

struct NeighbourLists {
  const u32* offsets;
  const u32* neighbours;
  u32 n;
  u32 unused;
};
