/* SPDX-License-Identifier: Apache-2.0 */
/* PNG, by libpng. An image is a tensor of (height, width, channels): 1 grey, 2 grey with alpha, 3 colour,
 * 4 colour with alpha, of uint8 or uint16. Numbers are those of the file: gamma is not applied. Palettes
 * and fewer than 8 bits are expanded, a transparent colour becomes alpha.
 *
 * libpng reports a mistake by longjmp, which here crosses none but its own frames. Its memory is
 * collected, so that running out of memory in the middle leaks nothing. */
#include <errno.h>
#include <png.h>
#include <setjmp.h>
#include <string.h>

#include "eval/file.h"
#include "ops/relate/shape_util.h"

enum { SIGNATURE_BYTES = 8 };

bool is_png(const Bytes *b) {
    return b->n >= SIGNATURE_BYTES && png_sig_cmp(b->p, 0, SIGNATURE_BYTES) == 0;
}

/* One image being read or written. */
typedef struct Image {
    const File *f;
    const Bytes *from;
    size_t at;
    Output *to;
    const char *wrong; /* what libpng said */
    jmp_buf failed;
} Image;

static void on_error(png_structp png, png_const_charp text) {
    Image *image = png_get_error_ptr(png);
    image->wrong = mem_strdup(text);
    longjmp(image->failed, 1);
}

static void on_warning(png_structp png, png_const_charp text) { (void)png, (void)text; }

static png_voidp allocate(png_structp png, png_alloc_size_t n) {
    (void)png;
    return mem_alloc(n);
}

static void release(png_structp png, png_voidp p) { (void)png, (void)p; }

/* libpng, ready to read or to write an image whose mistakes go to `image`. */
static png_structp begin(Image *image, bool writes, png_infop *info) {
    png_structp png = (writes ? png_create_write_struct_2 : png_create_read_struct_2)(
        PNG_LIBPNG_VER_STRING, image, on_error, on_warning, NULL, allocate, release);
    *info = png ? png_create_info_struct(png) : NULL;
    if (!*info)
        BUG("libpng does not begin");
    return png;
}

/* ---- reading --------------------------------------------------------------------------------- */

static void take_bytes(png_structp png, png_bytep out, size_t n) {
    Image *image = png_get_io_ptr(png);
    if (n > image->from->n - image->at)
        png_error(png, "it is cut off");
    memcpy(out, image->from->p + image->at, n);
    image->at += n;
}

static Tensor *read_image(Image *image, png_structp png, png_infop info) {
    png_set_read_fn(png, image, take_bytes);
    png_read_info(png, info);
    png_set_expand(png);
    if (png_get_bit_depth(png, info) == 16 && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)
        png_set_swap(png);
    int passes = png_set_interlace_handling(png);
    png_read_update_info(png, info);
    int64_t shape[3] = {png_get_image_height(png, info), png_get_image_width(png, info),
                        png_get_channels(png, info)};
    Tensor *t = tensor_new(png_get_bit_depth(png, info) == 16 ? DT_U16 : DT_U8, 3, shape);
    size_t row = png_get_rowbytes(png, info);
    for (int pass = 0; pass < passes; pass++)
        for (int64_t y = 0; y < shape[0]; y++) {
            if (builtin_interrupted(image->f->call))
                png_error(png, "interrupted");
            png_read_row(png, (unsigned char *)tensor_data(t) + (size_t)y * row, NULL);
        }
    png_read_end(png, NULL);
    return t;
}

Tensor *png_parse(const File *f, const Bytes *b) {
    Image *image = mem_new(Image);
    *image = (Image){.f = f, .from = b};
    png_infop info;
    png_structp png = begin(image, false, &info);
    if (setjmp(image->failed) == 0)
        return read_image(image, png, info);
    if (!builtin_interrupted(f->call))
        file_fail(f, DIAG_R0502, "this PNG image is damaged: %s", image->wrong);
    return NULL;
}

/* ---- writing --------------------------------------------------------------------------------- */

static void put_bytes(png_structp png, png_bytep bytes, size_t n) {
    Image *image = png_get_io_ptr(png);
    output_add(image->to, bytes, n);
}

static void flush_bytes(png_structp png) { (void)png; }

static void write_image(Image *image, png_structp png, png_infop info, const Tensor *t) {
    static const int kinds[] = {0, PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA,
                                PNG_COLOR_TYPE_RGB, PNG_COLOR_TYPE_RGB_ALPHA};
    int64_t channels = t->rank == 3 ? t->shape[2] : 1;
    size_t row = (size_t)(t->shape[1] * channels) * dtype_size(t->dtype);
    png_set_write_fn(png, image, put_bytes, flush_bytes);
    png_set_IHDR(png, info, (png_uint_32)t->shape[1], (png_uint_32)t->shape[0],
                 (int)dtype_info[t->dtype].bits, kinds[channels], PNG_INTERLACE_NONE,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_write_info(png, info);
    if (t->dtype == DT_U16 && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)
        png_set_swap(png);
    for (int64_t y = 0; y < t->shape[0]; y++) {
        if (builtin_interrupted(image->f->call))
            png_error(png, "interrupted");
        png_write_row(png, (const unsigned char *)tensor_data(t) + (size_t)y * row);
    }
    png_write_end(png, NULL);
}

bool png_write(const File *f, const Tensor *t) {
    bool sized = t->rank == 2 || (t->rank == 3 && t->shape[2] >= 1 && t->shape[2] <= 4);
    if (t->dtype != DT_U8 && t->dtype != DT_U16)
        return file_fail(
            f, DIAG_R0505,
            "PNG holds uint8 or uint16, this is %s; `(uint8) (255.0 * x)` makes an image "
            "of floats from 0 to 1",
            dtype_info[t->dtype].name);
    if (!sized || t->count == 0 || t->shape[0] > PNG_UINT_31_MAX || t->shape[1] > PNG_UINT_31_MAX)
        return file_fail(f, DIAG_R0505,
                         "an image has shape (height, width) or (height, width, 1 to 4 "
                         "channels), this has %s",
                         shape_text(t->rank, t->shape));
    Output file;
    Image *image = mem_new(Image);
    *image = (Image){.f = f, .to = &file};
    png_infop info;
    png_structp png = begin(image, true, &info);
    output_open(&file, f->path);
    if (setjmp(image->failed) == 0) {
        write_image(image, png, info, tensor_contiguous(t));
        return file_close(f, &file);
    }
    if (file_is_interrupted(f, &file))
        return false;
    file.why = EINVAL;
    output_close(&file);
    return file_fail(f, DIAG_R0505, "libpng does not write this image: %s", image->wrong);
}
