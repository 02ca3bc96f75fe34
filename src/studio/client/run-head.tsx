import { formatCount } from '../../core/format/format-words.js'
import type { RecordRow, SessionView } from '../protocol.js'
import { formatStatePath, getTone } from './format.js'
import { Icon } from './icons.js'

/** The title of a session and where it stands, and what came of the record that is shown. */
export function RunHead({
  view,
  row,
  step,
  onFork,
}: {
  view: SessionView
  row: RecordRow
  /** The number of the step that the record belongs to. */
  step: number
  onFork: (() => void) | null
}) {
  const { session, forks, rows } = view
  const { id } = session
  const compare = (a: string, b: string): string =>
    `#/compare/${encodeURIComponent(a)}/${encodeURIComponent(b)}`
  return (
    <div class="run-head">
      <div class="run-title">
        <h1>{session.title || session.name || session.id}</h1>
        <p>
          {session.standing === 'damaged' ? (
            <span class="pill tone-bad">damaged</span>
          ) : (
            <StatePill state={view.verdict.state} isAsleep={rows.at(-1)?.wakeAt !== undefined} />
          )}
          <span>
            {row.step > 0 ? `at step ${step}` : 'before the first step'}
            {row.run > 1 ? `, run ${row.run}` : ''}
          </span>
          {session.forkedFrom && (
            <a href={compare(session.forkedFrom.sessionId, id)}>
              Fork at record {session.forkedFrom.seq}: compare with its origin
            </a>
          )}
          {forks.length > 0 && (
            <a href={compare(id, forks.at(-1)?.sessionId ?? '')}>
              {formatCount(forks.length, 'fork')}: compare
            </a>
          )}
        </p>
      </div>
      <div class="run-now">
        <span class="now-label">{row.label}</span>
        <span class="now-path">{formatStatePath(row.to)}</span>
      </div>
      {onFork && (
        <button
          type="button"
          title="To change one result, message, instruction or approval, take the pencil at it"
          onClick={onFork}
        >
          <Icon name="fork" /> Fork from here
        </button>
      )}
    </div>
  )
}

/** Whether the run goes on when it is resumed: it is paused, or its process is gone. */
export function mayResume({ session }: SessionView): boolean {
  return session.state === 'PAUSED' || session.standing === 'interrupted'
}

/** `isAsleep`: it is paused until a date. */
export function StatePill({ state, isAsleep }: { state: string | null; isAsleep: boolean }) {
  const word = isAsleep ? 'sleeping' : (state ?? 'not begun').replaceAll('_', ' ').toLowerCase()
  return <span class={`pill tone-${getTone(state)}`}>{word}</span>
}
