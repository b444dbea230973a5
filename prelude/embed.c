/* SPDX-License-Identifier: Apache-2.0 */
/* A program of the build: embed SRCDIR FILE... writes prelude/texts.c, the table of prelude/texts.h.
 * FILE is named from the root of the source tree; it may stand in SRCDIR or be given with it. */
#include <stdio.h>
#include <string.h>

static int embed(const char *path) {
    FILE *f = fopen(path, "rb");
    if (!f) {
        perror(path);
        return 1;
    }
    int c, column = 0;
    long n = 0;
    printf("     \"");
    for (; (c = getc(f)) != EOF; n++) {
        if (c == '\n')
            printf("\\n");
        else if (c == '"' || c == '\\' || c == '?')
            printf("\\%c", c);
        else if (c < 32 || c > 126)
            printf("\\%03o", (unsigned)c);
        else
            putchar(c);
        if (c == '\n' || ++column > 80) {
            printf("\"\n     \"");
            column = 0;
        }
    }
    printf("\",\n     %ld},\n", n);
    return fclose(f) != 0;
}

int main(int argc, char **argv) {
    int failed = 0;
    printf("/* Made by prelude/embed.c. */\n#include \"prelude/texts.h\"\n\n"
           "const EmbeddedText embedded_texts[] = {\n");
    for (int i = 2; i < argc; i++) {
        const char *name = argv[i];
        size_t n = strlen(argv[1]);
        if (strncmp(name, argv[1], n) == 0 && name[n] == '/')
            name += n + 1;
        printf("    {\"%s\",\n", name);
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", argv[1], name);
        failed |= embed(path);
    }
    printf("    {0, 0, 0},\n};\n");
    return failed || fflush(stdout) != 0;
}
