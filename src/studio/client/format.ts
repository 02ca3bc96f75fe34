/** Formats numbers, times and states for people. */

const wholeNumberFormat = new Intl.NumberFormat('en', { maximumFractionDigits: 0 })

export function formatCount(value: number, one: string, many = `${one}s`): string {
  return `${wholeNumberFormat.format(value)} ${value === 1 ? one : many}`
}

export function formatNumber(value: number): string {
  return wholeNumberFormat.format(value)
}

/** `1,234`, `12.3k`, `4.5M`. */
export function formatShort(value: number): string {
  if (value < 10_000) return wholeNumberFormat.format(value)
  if (value < 1_000_000) return `${(value / 1000).toFixed(1).replace(/\.0$/, '')}k`
  return `${(value / 1_000_000).toFixed(1).replace(/\.0$/, '')}M`
}

/** USD; an em dash where it is not known. */
export function formatMoney(value: number | null): string {
  if (value === null) return '—'
  if (value === 0) return '$0'
  if (value < 0.00005) return '<$0.0001'
  if (value < 0.01) return `$${value.toFixed(4)}`
  return `$${value.toFixed(value < 10 ? 3 : 2)}`
}

/** `340 ms`, `2.1 s`, `1 min 47 s`, `12 min`, `3 h 5 min`, `2 d`. */
export function formatDuration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`
  if (ms < 59_500) return `${(ms / 1000).toFixed(ms < 10_000 ? 1 : 0)} s`
  const [seconds, minutes] = [Math.round(ms / 1000), Math.floor(ms / 60_000)]
  if (seconds < 600) return joinUnits(Math.floor(seconds / 60), 'min', seconds % 60, 's')
  if (minutes < 60) return `${minutes} min`
  if (minutes < 1440) return joinUnits(Math.floor(minutes / 60), 'h', minutes % 60, 'min')
  return `${Math.floor(minutes / 1440)} d`
}

function joinUnits(large: number, unit: string, small: number, smaller: string): string {
  return small === 0 ? `${large} ${unit}` : `${large} ${unit} ${small} ${smaller}`
}

export function formatAgo(at: number, now: number): string {
  const ms = Math.max(0, now - at)
  // The largest unit is enough.
  return ms < 5000 ? 'just now' : `${formatDuration(ms).replace(/^(\S+ \S+) .*/, '$1')} ago`
}

const clockFormat = new Intl.DateTimeFormat('en-GB', { timeStyle: 'medium' })
export function formatClock(at: number): string {
  return clockFormat.format(at)
}

/** The last part of a path: `requesting`. */
export function getLastPart(path: string): string {
  return path.slice(path.lastIndexOf('.') + 1)
}

/** `RUNNING › asking › requesting`; several paths are joined by commas. */
export function formatStatePath(paths: readonly string[]): string {
  return paths.map((path) => path.split('.').join(' › ')).join(', ')
}

/** The tone of a state, which decides its colour. */
export function getTone(state: string | null): 'good' | 'limit' | 'bad' | 'wait' | 'off' | 'busy' {
  switch (state) {
    case 'COMPLETED':
      return 'good'
    case 'MAX_STEPS':
    case 'TIMED_OUT':
    case 'BUDGET_EXCEEDED':
      return 'limit'
    case 'ERROR':
    case 'BLOCKED':
      return 'bad'
    case 'WAITING_FOR_INPUT':
    case 'PAUSED':
    case 'SLEEPING':
      return 'wait'
    case 'CANCELLED':
    case null:
      return 'off'
    default:
      return 'busy'
  }
}

/** Characters of JSON that are read at a glance. */
const lineLength = 64

/** Indents JSON text, unless it fits on one line; other text stays. */
export function formatJson(text: string): string {
  try {
    const indented = JSON.stringify(JSON.parse(text), null, 2)
    // No text in it has a line break: JSON escapes them.
    const line = indented.length > lineLength * 2 ? indented : indented.replaceAll(/\n */g, ' ')
    return line.length > lineLength ? indented : line
  } catch {
    return text
  }
}
