/* CRC-32C (Castagnoli, reflected polynomial 0x82F63B78) for the compiled kernels.
 *
 *   uint32_t streamhouse_crc32c(uint32_t crc, const void *data, size_t len)
 *
 * The register is inverted on the way in and out, so calls chain: crc(a + b) == crc(crc(a), b), from 0.
 * Needs no GIL and no set-up call: each object file that includes this fills its own tables when it is loaded.
 */
#ifndef STREAMHOUSE_CRC32C_H
#define STREAMHOUSE_CRC32C_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__x86_64__)
#define STREAMHOUSE_CRC32C_X86 1
#include <nmmintrin.h>
#elif defined(__aarch64__) && defined(__ARM_FEATURE_CRC32)
#define STREAMHOUSE_CRC32C_ARM 1
#include <arm_acle.h>
#endif

#define STREAMHOUSE_CRC32C_POLYNOMIAL 0x82F63B78u

/* Three CRCs run side by side, as the instruction takes three cycles but starts every cycle. */
#define STREAMHOUSE_CRC32C_LONG_LOG2 12
#define STREAMHOUSE_CRC32C_SHORT_LOG2 8

/* streamhouse_crc_step[k][b]: the register after byte b and then k zero bytes. */
static uint32_t streamhouse_crc_step[8][256];
/* Advance a register over 2^LOG2 zero bytes, one table per byte of the register. */
static uint32_t streamhouse_crc_skip_long[4][256];
static uint32_t streamhouse_crc_skip_short[4][256];
static int streamhouse_crc_hardware;

static uint32_t streamhouse_crc_apply(const uint32_t columns[32], uint32_t value)
{
    uint32_t result = 0;
    for (int bit = 0; value != 0; bit++, value >>= 1)
        if (value & 1u)
            result ^= columns[bit];
    return result;
}

/* Advancing over zeros is linear over GF(2): square the one-byte matrix log2 times, then spread it into tables. */
static void streamhouse_crc_fill_skip(uint32_t table[4][256], int log2_bytes)
{
    uint32_t columns[32], squared[32];
    for (int bit = 0; bit < 32; bit++) {
        uint32_t value = 1u << bit;
        columns[bit] = (value >> 8) ^ streamhouse_crc_step[0][value & 0xffu];
    }
    for (int round = 0; round < log2_bytes; round++) {
        for (int bit = 0; bit < 32; bit++)
            squared[bit] = streamhouse_crc_apply(columns, columns[bit]);
        memcpy(columns, squared, sizeof columns);
    }
    for (int byte = 0; byte < 4; byte++)
        for (uint32_t value = 0; value < 256; value++)
            table[byte][value] = streamhouse_crc_apply(columns, value << (8 * byte));
}

__attribute__((constructor)) static void streamhouse_crc_prepare(void)
{
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t value = byte;
        for (int bit = 0; bit < 8; bit++)
            value = (value >> 1) ^ ((value & 1u) ? STREAMHOUSE_CRC32C_POLYNOMIAL : 0u);
        streamhouse_crc_step[0][byte] = value;
    }
    for (int zeros = 1; zeros < 8; zeros++)
        for (uint32_t byte = 0; byte < 256; byte++) {
            uint32_t value = streamhouse_crc_step[zeros - 1][byte];
            streamhouse_crc_step[zeros][byte] = (value >> 8) ^ streamhouse_crc_step[0][value & 0xffu];
        }
    streamhouse_crc_fill_skip(streamhouse_crc_skip_long, STREAMHOUSE_CRC32C_LONG_LOG2);
    streamhouse_crc_fill_skip(streamhouse_crc_skip_short, STREAMHOUSE_CRC32C_SHORT_LOG2);
#if defined(STREAMHOUSE_CRC32C_X86)
    __builtin_cpu_init();
    streamhouse_crc_hardware = __builtin_cpu_supports("sse4.2") != 0;
#elif defined(STREAMHOUSE_CRC32C_ARM)
    streamhouse_crc_hardware = 1;
#endif
}

/* Slicing by eight; bytes are assembled by hand, so it does not depend on the machine's byte order. */
__attribute__((unused)) static uint32_t streamhouse_crc_software(uint32_t state, const uint8_t *next, size_t len)
{
    for (; len >= 8; next += 8, len -= 8) {
        uint32_t low = state ^ ((uint32_t)next[0] | (uint32_t)next[1] << 8 | (uint32_t)next[2] << 16 |
                                (uint32_t)next[3] << 24);
        state = streamhouse_crc_step[7][low & 0xffu] ^ streamhouse_crc_step[6][(low >> 8) & 0xffu] ^
                streamhouse_crc_step[5][(low >> 16) & 0xffu] ^ streamhouse_crc_step[4][low >> 24] ^
                streamhouse_crc_step[3][next[4]] ^ streamhouse_crc_step[2][next[5]] ^
                streamhouse_crc_step[1][next[6]] ^ streamhouse_crc_step[0][next[7]];
    }
    for (; len > 0; next++, len--)
        state = (state >> 8) ^ streamhouse_crc_step[0][(state ^ *next) & 0xffu];
    return state;
}

#if defined(STREAMHOUSE_CRC32C_X86)
static inline uint64_t streamhouse_crc_load(const uint8_t *from)
{
    uint64_t word;
    memcpy(&word, from, sizeof word);
    return word;
}

static inline uint32_t streamhouse_crc_skip(uint32_t table[4][256], uint32_t state)
{
    return table[0][state & 0xffu] ^ table[1][(state >> 8) & 0xffu] ^ table[2][(state >> 16) & 0xffu] ^
           table[3][state >> 24];
}

__attribute__((target("sse4.2"))) static inline uint32_t streamhouse_crc_three_lanes(
    uint32_t state, const uint8_t *next, size_t lane, uint32_t table[4][256])
{
    uint64_t first = state, second = 0, third = 0;
    for (const uint8_t *end = next + lane; next < end; next += 8) {
        first = _mm_crc32_u64(first, streamhouse_crc_load(next));
        second = _mm_crc32_u64(second, streamhouse_crc_load(next + lane));
        third = _mm_crc32_u64(third, streamhouse_crc_load(next + 2 * lane));
    }
    state = streamhouse_crc_skip(table, (uint32_t)first) ^ (uint32_t)second;
    return streamhouse_crc_skip(table, state) ^ (uint32_t)third;
}

__attribute__((target("sse4.2"), unused)) static uint32_t streamhouse_crc_x86(
    uint32_t state, const uint8_t *next, size_t len)
{
    const size_t long_lane = (size_t)1 << STREAMHOUSE_CRC32C_LONG_LOG2;
    const size_t short_lane = (size_t)1 << STREAMHOUSE_CRC32C_SHORT_LOG2;
    for (; len >= 3 * long_lane; next += 3 * long_lane, len -= 3 * long_lane)
        state = streamhouse_crc_three_lanes(state, next, long_lane, streamhouse_crc_skip_long);
    for (; len >= 3 * short_lane; next += 3 * short_lane, len -= 3 * short_lane)
        state = streamhouse_crc_three_lanes(state, next, short_lane, streamhouse_crc_skip_short);
    uint64_t wide = state;
    for (; len >= 8; next += 8, len -= 8)
        wide = _mm_crc32_u64(wide, streamhouse_crc_load(next));
    state = (uint32_t)wide;
    for (; len > 0; next++, len--)
        state = _mm_crc32_u8(state, *next);
    return state;
}
#elif defined(STREAMHOUSE_CRC32C_ARM)
__attribute__((unused)) static uint32_t streamhouse_crc_arm(uint32_t state, const uint8_t *next, size_t len)
{
    for (; len >= 8; next += 8, len -= 8) {
        uint64_t word;
        memcpy(&word, next, sizeof word);
        state = __crc32cd(state, word);
    }
    for (; len > 0; next++, len--)
        state = __crc32cb(state, *next);
    return state;
}
#endif

__attribute__((unused)) static inline uint32_t streamhouse_crc32c(uint32_t crc, const void *data, size_t len)
{
    const uint8_t *next = (const uint8_t *)data;
#if defined(STREAMHOUSE_CRC32C_X86)
    if (streamhouse_crc_hardware)
        return ~streamhouse_crc_x86(~crc, next, len);
#elif defined(STREAMHOUSE_CRC32C_ARM)
    if (streamhouse_crc_hardware)
        return ~streamhouse_crc_arm(~crc, next, len);
#endif
    return ~streamhouse_crc_software(~crc, next, len);
}

/* The fallback by itself, so that tests can compare the two on a machine that has the instruction. */
__attribute__((unused)) static inline uint32_t streamhouse_crc32c_portable(uint32_t crc, const void *data, size_t len)
{
    return ~streamhouse_crc_software(~crc, (const uint8_t *)data, len);
}

#endif
