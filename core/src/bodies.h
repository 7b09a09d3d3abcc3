#ifndef SNECK_BODIES_H
#define SNECK_BODIES_H

struct body;

void sneck__bodies_free(struct body *bodies);

#endif
