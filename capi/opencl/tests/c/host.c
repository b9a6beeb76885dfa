/* `host LIBRARY`: has a library begin copies, unloads it, and goes on for a while. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>

int main(int count, char **words) {
    void *library = count > 1 ? dlopen(words[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        return 3;
    }
    void (*start)(void) = (void (*)(void))dlsym(library, "start");
    start();
    if (dlclose(library) || dlopen(words[1], RTLD_NOW | RTLD_NOLOAD)) return 4;
    printf("unloaded\n");
    fflush(stdout);
    usleep(300000);
    printf("end\n");
    return 0;
}
