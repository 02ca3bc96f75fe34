import { formatAgo, type Paint, shorten } from '../../../core/format/format-words.js'
import type { SessionSnapshot } from '../../../core/sessions/replay-session.js'
import type { ListedSession } from '../../../core/sessions/store/store.js'
import { formatIsoTime, formatTimestamp } from '../../output.js'

export function formatHead(
  { id, createdAt, updatedAt, summary }: ListedSession,
  { name }: Pick<SessionSnapshot, 'name'>,
  paint: Paint,
): string {
  const listedTitle = summary?.title ?? name ?? ''
  const title = listedTitle === '' || listedTitle === id ? '' : ` · ${shorten(listedTitle, 80)}`
  const when = `created ${formatTimestamp(createdAt)} UTC, written ${formatAgo(updatedAt, Date.now())}`
  return `${paint('bold', `Session ${id}${title}`)}\n${paint('dim', when)}\n`
}

/** Formats the head of a line for a record: its number (for `--at`), time, and type. */
export function formatLogHead(seq: number, at: number, kind: string): string {
  const when = (formatIsoTime(at) ?? '?').slice(0, 23).replace('T', ' ').padEnd(23)
  return `${String(seq).padStart(5)}  ${when}  ${shorten(kind, 40).padEnd(18)}`
}
