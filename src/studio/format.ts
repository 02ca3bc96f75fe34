import { formatCount } from '../core/format/format-words.js'

/** `1,234`, `12.3k`, `4.5M`. */
export function formatShort(value: number): string {
  if (value < 10_000) return formatCount(value)
  if (value < 1_000_000) return `${(value / 1000).toFixed(1).replace(/\.0$/, '')}k`
  return `${(value / 1_000_000).toFixed(1).replace(/\.0$/, '')}M`
}

export function sessionAddress(id: string, seq?: number): string {
  return `#/session/${encodeURIComponent(id)}${seq === undefined ? '' : `/${seq}`}`
}

export function compareAddress(a: string, b: string): string {
  return `#/compare/${encodeURIComponent(a)}/${encodeURIComponent(b)}`
}

export function formatError(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

const clockFormat = new Intl.DateTimeFormat('en-GB', { timeStyle: 'medium' })
export function formatClock(at: number): string {
  return clockFormat.format(at)
}

/** `token_budget` → `token budget` */
export function formatWord(name: string): string {
  return name.replaceAll('_', ' ')
}

export function capitalize(text: string): string {
  return `${text[0]?.toUpperCase() ?? ''}${text.slice(1)}`
}

/** `RUNNING.asking.requesting` → `requesting` */
export function getLastPart(path: string): string {
  return path.slice(path.lastIndexOf('.') + 1)
}

/** `RUNNING › asking › requesting`. Several paths are joined by commas. */
export function formatStatePath(paths: readonly string[]): string {
  return paths.map((path) => path.split('.').join(' › ')).join(', ')
}

/** `2 × look_up, pay`. `times` follows each count. A single name has a count only if `times` is empty. */
export function joinNames(names: readonly string[], times = ' ×'): string {
  const counts = new Map<string, number>()
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1)
  return [...counts]
    .map(([name, count]) => (count > 1 || times === '' ? `${count}${times} ${name}` : name))
    .join(', ')
}

export type Tone = 'good' | 'limit' | 'bad' | 'wait' | 'off' | 'busy'

const tones = new Map<string, Tone>([
  ['COMPLETED', 'good'],
  ['MAX_STEPS', 'limit'],
  ['TIMED_OUT', 'limit'],
  ['BUDGET_EXCEEDED', 'limit'],
  ['ERROR', 'bad'],
  ['BLOCKED', 'bad'],
  ['WAITING_FOR_INPUT', 'wait'],
  ['PAUSED', 'wait'],
  ['SLEEPING', 'wait'],
  ['CANCELLED', 'off'],
])

export const getTone = (state: string | null): Tone => tones.get(state ?? 'CANCELLED') ?? 'busy'

export function getSessionTone({
  status,
  value,
  state,
}: Record<'value' | 'state', string | null> & { status: string }): Tone {
  if (status === 'damaged') return 'bad'
  if (value === null || state !== null) return getTone(state)
  return status === 'running' ? 'busy' : 'wait'
}

const lineLength = 64

/** Indents JSON unless it fits on one line. Other text is returned unchanged. */
export function formatJson(text: string): string {
  try {
    const indented = JSON.stringify(JSON.parse(text), null, 2)
    // JSON escapes line breaks inside strings.
    const line = indented.length > lineLength * 2 ? indented : indented.replaceAll(/\n */g, ' ')
    return line.length > lineLength ? indented : line
  } catch {
    return text
  }
}

/** Matches only bitmap formats, because an SVG is a document. */
const picture = /^data:image\/(?:png|jpeg|gif|webp);base64,[\w+/=]+$/

export const isPicture = (address: string): boolean => picture.test(address)

/** `a.b.c` → `a`, `a.b`, `a.b.c`. Empty for the root. */
export function listAncestors(path: string): string[] {
  if (path === '' || path === '(root)') return []
  return path.split('.').map((_, index, parts) => parts.slice(0, index + 1).join('.'))
}
