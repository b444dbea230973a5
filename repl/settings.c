/* SPDX-License-Identifier: Apache-2.0 */
#include "repl/settings.h"

#include <stdlib.h>
#include <string.h>

#include "repl/plot/screen.h"
#include "repl/session_internal.h"

typedef struct Setting {
    const char *name, *takes, *help;
    bool (*set)(Session *s, const char *value); /* false: it takes something else */
    void (*print)(const SessionOptions *o, Str *out);
} Setting;

static bool read_number(const char *value, int least, int most, int *out) {
    char *end;
    long n = strtol(value, &end, 10);
    if (end == value || *end || n < least || n > most)
        return false;
    *out = (int)n;
    return true;
}

static bool read_switch(const char *value, bool *out) {
    *out = strcmp(value, "on") == 0;
    return *out || strcmp(value, "off") == 0;
}

static const char *switch_text(bool on) { return on ? "on" : "off"; }

static bool set_colors(Session *s, const char *value) {
    bool on;
    if (!read_switch(value, &on))
        return false;
    s->options.color = s->options.plot_color = on;
    return true;
}

static void print_colors(const SessionOptions *o, Str *out) { str_add(out, switch_text(o->color)); }

static bool set_digits(Session *s, const char *value) {
    int digits;
    if (!read_number(value, 0, 20, &digits))
        return false;
    session_set_digits(s, digits);
    return true;
}

static void print_digits(const SessionOptions *o, Str *out) { str_printf(out, "%d", o->digits); }

static bool set_edge(Session *s, const char *value) {
    return read_number(value, 1, 100, &s->options.edge);
}

static void print_edge(const SessionOptions *o, Str *out) {
    str_printf(out, "%d", o->edge ? o->edge : 3);
}

static bool set_elements(Session *s, const char *value) {
    return read_number(value, 1, 1000000, &s->options.most_elements);
}

static void print_elements(const SessionOptions *o, Str *out) {
    str_printf(out, "%d", o->most_elements ? o->most_elements : 1000);
}

static bool set_plots(Session *s, const char *value) {
    for (int i = 0; i < NSCREENS; i++)
        if (strcmp(plot_screen_names[i], value) == 0) {
            s->options.plot_screen = i;
            return true;
        }
    return false;
}

static void print_plots(const SessionOptions *o, Str *out) {
    str_add(out, plot_screen_names[o->plot_screen]);
}

static bool set_seed(Session *s, const char *value) {
    char *end;
    unsigned long long seed = strtoull(value, &end, 10);
    if (end == value || *end || *value == '-')
        return false;
    session_set_seed(s, seed);
    return true;
}

static void print_seed(const SessionOptions *o, Str *out) {
    str_printf(out, "%llu", (unsigned long long)o->seed);
}

static bool set_types(Session *s, const char *value) {
    bool on;
    if (!read_switch(value, &on))
        return false;
    s->options.hides_types = !on;
    return true;
}

static void print_types(const SessionOptions *o, Str *out) {
    str_add(out, switch_text(!o->hides_types));
}

static bool set_width(Session *s, const char *value) {
    int width;
    if (!read_number(value, 0, 1000, &width) || (width && width < 10))
        return false;
    s->options.fixed_width = width;
    session_set_width(s, s->options.width, s->options.diag_width);
    return true;
}

static void print_width(const SessionOptions *o, Str *out) {
    str_printf(out, "%d", o->fixed_width);
}

/* Sorted. */
static const Setting settings[] = {
    {"colors", "on|off", "in messages and plots", set_colors, print_colors},
    {"digits", "N", "show floats to N digits; 0: exactly", set_digits, print_digits},
    {"edge", "N", "rows and columns shown at each end of a large tensor", set_edge, print_edge},
    {"elements", "N", "a tensor of more is shown by its ends", set_elements, print_elements},
    {"plots", "auto|kitty|iterm|sixel|braille|ascii", "how plots are shown", set_plots,
     print_plots},
    {"seed", "N", "of the random numbers", set_seed, print_seed},
    {"types", "on|off", "the type behind each value", set_types, print_types},
    {"width", "N", "columns to lay values out for; 0: those of the terminal", set_width,
     print_width},
};
enum { NSETTINGS = sizeof settings / sizeof *settings };

size_t settings_count(void) { return NSETTINGS; }

const char *settings_name(size_t i) { return settings[i].name; }

static void list(Session *s) {
    for (size_t i = 0; i < NSETTINGS; i++) {
        Str line = {0};
        str_printf(&line, "  %s ", settings[i].name);
        settings[i].print(&s->options, &line);
        str_pad(&line, 18);
        str_printf(&line, " %s: %s\n", settings[i].takes, settings[i].help);
        session_say(s, session_fold(s, &line));
    }
}

static const Setting *find_setting(Session *s, const char *name, size_t n) {
    Str names = {0};
    for (size_t i = 0; i < NSETTINGS; i++) {
        if (strlen(settings[i].name) == n && strncmp(settings[i].name, name, n) == 0)
            return &settings[i];
        str_printf(&names, "%s%s", i ? ", " : "", settings[i].name);
    }
    Str line = {0};
    str_printf(&line, "there is no setting `%.*s`; there are %s\n", (int)n, name, str_text(&names));
    session_complain(s, "%s", session_fold(s, &line));
    return NULL;
}

void settings_change(Session *s, const char *text) {
    size_t n = strcspn(text, " \t");
    const char *value = text + n + strspn(text + n, " \t=");
    if (!*text) {
        list(s);
        return;
    }
    const Setting *setting = find_setting(s, text, n);
    if (setting && !setting->set(s, value))
        session_complain(s, ":set %s wants %s\n", setting->name, setting->takes);
}

void settings_reset(Session *s, const char *name) {
    const Setting *setting = find_setting(s, name, strlen(name));
    Str value = {0};
    if (!setting)
        return;
    setting->print(&s->given, &value);
    setting->set(s, str_text(&value));
}
