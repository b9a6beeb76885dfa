/* Programs that end in every way but the proper one: while a kernel runs and others are held back. */
#include "program.h"

#include <signal.h>
#include <sys/wait.h>

static const size_t global = 4096;

int main(int count, char **arguments) {
    const char *way = count > 1 ? arguments[1] : "exit";
    begin();
    cl_command_queue queue = new_queue(0);
    cl_mem buffer = new_buffer(4096 * sizeof(cl_uint));
    cl_kernel spin = new_kernel("spin", buffer, 20000), brief = new_kernel("add", buffer, 1);
    OK(clEnqueueNDRangeKernel(queue, brief, 1, NULL, &global, NULL, 0, NULL, NULL));
    OK(clFinish(queue));
    if (!strcmp(way, "forks")) {
        OK(clEnqueueNDRangeKernel(queue, spin, 1, NULL, &global, NULL, 0, NULL, NULL));
        pid_t child = fork();
        /* A driver's threads are not in the child, which uses it no more. */
        if (child == 0) _exit(5);
        int status;
        waitpid(child, &status, 0);
        printf("child %d\n", WEXITSTATUS(status));
        OK(clFinish(queue));
        printf("end\n");
        return 0;
    }
    printf("begun\n");
    fflush(stdout);
    for (int round = 0; strcmp(way, "loops") == 0 || round < 30; round++) {
        OK(clEnqueueNDRangeKernel(queue, spin, 1, NULL, &global, NULL, 0, NULL, NULL));
        if (round % 4 == 3 && strcmp(way, "loops") == 0) OK(clFinish(queue));
    }
    OK(clFlush(queue));
    if (!strcmp(way, "crashes")) abort();
    if (!strcmp(way, "is_killed")) raise(SIGKILL);
    if (!strcmp(way, "ends_at_once")) _exit(0);
    exit(0);
}
