#include <laxity.h>

void use(struct laxity_graph *graph, void (*detect)(const void *image, size_t length));

void use(struct laxity_graph *graph, void (*detect)(const void *image, size_t length))
{
// c.md 1
}
