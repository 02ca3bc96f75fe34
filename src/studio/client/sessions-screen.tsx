import { formatWakeTime } from '../../core/base/wake-time.js'
import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import type { LiveMessage, SessionRow, SessionsView } from '../protocol.js'
import { Loading, Trouble, useLoaded } from './loading.js'
import { useKeys } from './run-hooks.js'
import { StatePill } from './run-head.js'
import { RunScreen } from './run-screen.js'
import type { Source } from './data-source.js'
import { formatAgo, formatCount, formatMoney, formatNumber, formatShort } from './format.js'

const standings = ['waiting', 'running', 'interrupted', 'sleeping', 'ended', 'damaged'] as const
const titles: Record<SessionRow['standing'], string> = {
  waiting: 'Waiting for you',
  running: 'Running',
  interrupted: 'Interrupted',
  sleeping: 'Sleeping',
  ended: 'Ended',
  damaged: 'Damaged',
}
const pageSize = 60

interface ScreenProps {
  source: Source
  onProblem: (problem: string | null) => void
}

/** The session that a process writes to; when none does, the one written last. */
export function LatestScreen({ source, onProblem }: ScreenProps) {
  const list = useLoaded('sessions', () => source.sessions())
  const shown = useRef<string | null>(null)
  useLiveList(source, list.set, onProblem)
  if (list.error !== null && !list.value) return <Trouble error={list.error} onRetry={list.reload} />
  if (!list.value) return <Loading what="Reading the sessions" />
  const { sessions } = list.value
  const before = sessions.find(({ id }) => id === shown.current)
  const [latest] = sessions.toSorted((a, b) => b.updatedAt - a.updatedAt)
  const row = before?.holder == null ? latest : before
  shown.current = row?.id ?? null
  if (row === undefined) return <Loading what="Waiting for a session" />
  return <RunScreen key={row.id} source={source} id={row.id} seq={null} onProblem={onProblem} />
}

/** All sessions of the store: those that wait for a person first. */
export function SessionsScreen({ source, onProblem }: ScreenProps) {
  const list = useLoaded('sessions', () => source.sessions())
  const [search, setSearch] = useState('')
  const [only, setOnly] = useState<SessionRow['standing'] | null>(null)
  const [chosen, choose] = useState<readonly string[]>([])
  const field = useRef<HTMLInputElement>(null)
  useLiveList(source, list.set, onProblem)
  useKeys(({ key }) => {
    if (key !== '/') return false
    field.current?.focus()
    return true
  })
  const found = useMemo(() => filterSessions(list.value?.sessions ?? [], search), [list.value, search])
  if (list.error !== null && !list.value) return <Trouble error={list.error} onRetry={list.reload} />
  if (!list.value) return <Loading what="Reading the sessions" />
  const { sessions, store, readOnly } = list.value
  const groups = standings
    .filter((standing) => only === null || only === standing)
    .map((standing) => ({ standing, rows: found.filter((row) => row.standing === standing) }))
    .filter(({ rows }) => rows.length > 0)
  const toggle = (id: string): void =>
    choose((before) => (before.includes(id) ? before.filter((one) => one !== id) : [...before.slice(-1), id]))
  const [a, b] = chosen
  return (
    <main class="sessions">
      <header class="sessions-head">
        <h1>Sessions</h1>
        <p class="lead">
          {formatCount(sessions.length, 'session')}
          {store !== 'sessions' && ` · ${store}`}
        </p>
        <div class="sessions-tools">
          <label class="search">
            <span class="sr">Search</span>
            <input
              ref={field}
              type="search"
              placeholder="Search  /"
              value={search}
              onInput={(event) => setSearch(event.currentTarget.value)}
            />
          </label>
          <div class="segments" role="group" aria-label="Which are shown">
            <button type="button" aria-pressed={only === null} onClick={() => setOnly(null)}>
              All
            </button>
            {standings
              .filter((standing) => sessions.some((row) => row.standing === standing))
              .map((standing) => (
                <button
                  key={standing}
                  type="button"
                  aria-pressed={only === standing}
                  onClick={() => setOnly(standing)}
                >
                  {titles[standing]}{' '}
                  <small>{formatNumber(sessions.filter((row) => row.standing === standing).length)}</small>
                </button>
              ))}
          </div>
          {a !== undefined && b !== undefined && (
            <a class="button primary" href={`#/compare/${encodeURIComponent(a)}/${encodeURIComponent(b)}`}>
              Compare the two
            </a>
          )}
        </div>
        {readOnly !== null && <p class="read-only">{readOnly}</p>}
      </header>
      {groups.length === 0 && <EmptyList isEmpty={sessions.length === 0} store={store} />}
      {groups.map(({ standing, rows }) => (
        <Group key={standing} standing={standing} rows={rows} chosen={chosen} onToggle={toggle} />
      ))}
    </main>
  )
}

function EmptyList({ isEmpty, store }: { isEmpty: boolean; store: string }) {
  return isEmpty ? (
    <div class="trouble">
      <h2>No session yet</h2>
      <p>
        Nothing has been written to {store}. Start a run with a store, or play a rehearsal:{' '}
        <code>npx statewright run --rehearsal --studio</code>
      </p>
    </div>
  ) : (
    <p class="empty">No session has these words.</p>
  )
}

interface GroupProps {
  standing: SessionRow['standing']
  rows: readonly SessionRow[]
  chosen: readonly string[]
  onToggle: (id: string) => void
}

function Group({ standing, rows, chosen, onToggle }: GroupProps) {
  const [limit, setLimit] = useState(pageSize)
  const more = useRef<HTMLButtonElement>(null)
  const hidden = rows.length - limit
  useEffect(() => {
    if (!more.current) return undefined
    const seen = new IntersectionObserver((entries) => {
      if (entries.some(({ isIntersecting }) => isIntersecting)) setLimit((before) => before + pageSize)
    })
    seen.observe(more.current)
    return () => seen.disconnect()
  }, [limit, hidden > 0])
  return (
    <section class={`group group-${standing}`} aria-labelledby={`group-${standing}`}>
      <h2 id={`group-${standing}`}>
        {titles[standing]} <small>{formatNumber(rows.length)}</small>
      </h2>
      <ul class="session-list">
        {rows.slice(0, limit).map((row) => (
          <Row key={row.id} row={row} isChosen={chosen.includes(row.id)} onToggle={onToggle} />
        ))}
      </ul>
      {hidden > 0 && (
        <button ref={more} type="button" class="quiet-button" onClick={() => setLimit(limit + pageSize)}>
          {formatNumber(hidden)} more
        </button>
      )}
    </section>
  )
}

function Row({
  row,
  isChosen,
  onToggle,
}: {
  row: SessionRow
  isChosen: boolean
  onToggle: (id: string) => void
}) {
  const {
    id,
    name,
    title,
    state,
    reason,
    wakeAt,
    steps,
    tokens,
    cost,
    updatedAt,
    problem,
    holder,
    isAttached,
    forkedFrom,
  } = row
  return (
    <li class="session">
      <input
        type="checkbox"
        checked={isChosen}
        aria-label={`Choose ${title || id} to compare`}
        onChange={() => onToggle(id)}
      />
      <a href={`#/session/${encodeURIComponent(id)}`} class="session-link">
        <span class="session-title">{title || name || id}</span>
        <span class="session-sub">
          {name ?? id}
          {forkedFrom && ` · fork of ${forkedFrom.sessionId}`}
          {isAttached ? ' · live' : holder === null ? '' : ` · ${holder}`}
          {problem !== null && ` · ${problem}`}
        </span>
      </a>
      <span class="session-state">
        {row.standing === 'damaged' ? (
          <span class="pill tone-bad">damaged</span>
        ) : (
          <StatePill state={state} isAsleep={reason === 'sleeping'} />
        )}
        {reason !== null && reason !== 'sleeping' && <small>{reason.replaceAll('_', ' ')}</small>}
        {wakeAt !== null && <small>until {formatWakeTime(wakeAt)}</small>}
      </span>
      <span class="session-number">
        {steps === null ? '—' : formatNumber(steps)}
        <small>{steps === 1 ? 'step' : 'steps'}</small>
      </span>
      <span class="session-number">
        {formatShort(tokens)}
        <small>tokens</small>
      </span>
      <span class="session-number">
        {formatMoney(cost)}
        <small>cost</small>
      </span>
      <time class="session-time" dateTime={new Date(updatedAt).toISOString()}>
        {formatAgo(updatedAt, Date.now())}
      </time>
    </li>
  )
}

function filterSessions(sessions: readonly SessionRow[], search: string): SessionRow[] {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean)
  const found = sessions.filter(({ id, name, title, state, reason }) => {
    const text = `${id} ${name ?? ''} ${title} ${state ?? ''} ${reason ?? ''}`.toLowerCase()
    return words.every((word) => text.includes(word))
  })
  return found.toSorted((one, other) => other.updatedAt - one.updatedAt)
}

/** Applies live changes once a frame, so that many runs cost no more than one. */
function useLiveList(
  source: Source,
  set: (change: (view: SessionsView) => SessionsView) => void,
  onProblem: (problem: string | null) => void,
): void {
  useEffect(() => {
    const changed = new Map<string, SessionRow | null>()
    let frame = 0
    const put = (): void => {
      frame = 0
      const now = new Map(changed)
      changed.clear()
      set((view) => ({
        ...view,
        sessions: [
          ...view.sessions.flatMap((row) => {
            const other = now.get(row.id)
            now.delete(row.id)
            return other === null ? [] : [other ?? row]
          }),
          ...[...now.values()].filter((row) => row !== null),
        ],
      }))
    }
    const hear = (message: LiveMessage): void => {
      if (message.type === 'store') return onProblem(message.problem)
      if (message.type === 'session') changed.set(message.row.id, message.row)
      else if (message.type === 'gone') changed.set(message.sessionId, null)
      else return undefined
      frame ||= requestAnimationFrame(put)
      return undefined
    }
    const stop = source.live(null, hear)
    return () => {
      stop()
      cancelAnimationFrame(frame)
    }
  }, [source])
}
