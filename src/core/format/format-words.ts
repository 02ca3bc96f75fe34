/** Small pieces of text for people. */

import { stripControls } from '../base/strip-controls.js'

export { stripControls }

/** At most `width` (at least 1) characters, on one line. */
export function shorten(text: string, width: number): string {
  // Nothing behind four times the width can be seen; huge results are not gone through.
  const line = stripControls(text.slice(0, width * 4))
    .replaceAll(/\s+/g, ' ')
    .trim()
  const letters = Array.from(line)
  return letters.length <= width && text.length <= width * 4
    ? line
    : `${letters.slice(0, width - 1).join('')}…`
}

export function getFirstLine(text: string): string {
  const start = text.trimStart()
  const end = start.indexOf('\n')
  return end < 0 ? start : `${start.slice(0, end)} …`
}

/** `12 ms`, `1.5 s`, `2 min 5 s` */
export function formatDuration(ms: number): string {
  const whole = Math.max(0, Math.round(ms))
  if (whole < 1_000) return `${whole} ms`
  if (whole < 59_950) return `${(whole / 1_000).toFixed(1)} s`
  const seconds = Math.round(whole / 1_000)
  return `${Math.floor(seconds / 60)} min ${seconds % 60} s`
}

export function formatCount(value: number): string {
  return value.toLocaleString('en-US')
}

/** `$1.25`; small amounts with four decimals; `unknown` when a price is. */
export function formatMoney(usd: number | null): string {
  if (usd === null) return 'unknown (no price for this model)'
  if (usd > 0 && usd < 0.0001) return '< $0.0001'
  return `$${usd.toFixed(usd !== 0 && usd < 1 ? 4 : 2)}`
}
