/* `host LIBRARY WHAT`: has a library begin copies, unloads it, and goes on. WHAT: ends, or waits until the copies are complete. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int count, char **words)
{
	void *library = count > 2 ? dlopen(words[1], RTLD_NOW | RTLD_LOCAL) : NULL;
	volatile unsigned char *last, *(*begin)(void);

	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		return 3;
	}
	begin = (volatile unsigned char *(*)(void))dlsym(library, "begin");
	last = begin();
	int was_complete = *last;
	if (dlclose(library) || dlopen(words[1], RTLD_NOW | RTLD_NOLOAD))
		return 4;
	printf("unloaded %d\n", was_complete);
	fflush(stdout);
	if (!strcmp(words[2], "waits"))
		while (*last != 7)
			usleep(1000);
	printf("end\n");
	return 0;
}
