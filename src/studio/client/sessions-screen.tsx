import { useEffect, useRef, useState } from 'preact/hooks'
import { formatCount } from '../../core/format/format-words.js'
import type { LiveMessage, SessionRow, SessionsView } from '../protocol.js'
import { findTerm, longestQuery, replaceTerm, sessionStatuses } from '../session-query.js'
import { noSessions, type Source, SourceError } from './data-source.js'
import { paths } from '../routes.js'
import { Loading, Refusal, Trouble, useLoaded } from './loading.js'
import { useWrittenAddress } from './page.js'
import { useKeys } from './run-hooks.js'
import { RunScreen } from './run-screen.js'
import { SessionDays, SharedBudgets } from './session-days.js'
import { SavedViews, SessionFilters } from './session-filters.js'
import { SessionItem, SessionTable } from './session-list.js'
import { compareAddress, formatError } from '../format.js'

const titles: Record<SessionRow['status'], string> = {
  waiting: 'Waiting for you',
  running: 'Running',
  interrupted: 'Interrupted',
  sleeping: 'Sleeping',
  ended: 'Ended',
  damaged: 'Damaged',
}

interface ScreenProps {
  source: Source
  onProblem: (problem: string | null) => void
}

/** The session that a process is writing to, otherwise the most recently written one. */
export function LatestScreen({ source, onProblem }: ScreenProps) {
  const { view, error, reload } = useFoundSessions(source, { q: '', sort: 'updated' }, onProblem)
  const shown = useRef<string | null>(null)
  if (error !== null && !view) return <Trouble error={error} onRetry={reload} />
  if (!view) return <Loading what="Loading the sessions" />
  const { sessions } = view
  const before = sessions.find(({ id }) => id === shown.current)
  const [latest] = sessions.toSorted((a, b) => b.updatedAt - a.updatedAt)
  const row = before?.holder == null ? latest : before
  shown.current = row?.id ?? null
  if (row === undefined) return <Loading what="Waiting for a session" />
  return <RunScreen key={row.id} source={source} id={row.id} seq={null} onProblem={onProblem} />
}

export function SessionsScreen({
  source,
  query,
  address,
  onProblem,
}: ScreenProps & { query: string; address: object }) {
  const [q, setQuery] = useState(query)
  useEffect(() => setQuery(query), [address])
  const [sort, setSort] = useState('status')
  const [chosen, choose] = useState<readonly string[]>([])
  const field = useRef<HTMLInputElement>(null)
  const { view: found, error, reload, loadMore } = useFoundSessions(source, { q, sort }, onProblem)
  useKeys({ '/': () => field.current?.focus() })
  useWrittenAddress(q.trim() === '' ? '#/' : `#/find/${encodeURIComponent(q)}`)
  const isBadQuery = error instanceof SourceError && error.code === 'invalid_option'
  if (error !== null && !isBadQuery && !found) return <Trouble error={error} onRetry={reload} />
  if (!found && !isBadQuery) return <Loading what="Loading the sessions" />
  // If the first search is invalid, there are no sessions to show.
  const view = found ?? noSessions
  const { sessions, total, store, readOnly } = view
  const hidden = [
    ...(sessions.some(({ agent }) => agent !== null) ? [] : ['no-agents']),
    ...(sessions.some(({ models }) => models.length > 0) ? [] : ['no-models']),
  ]
  const toggle = (id: string): void =>
    choose((before) => (before.includes(id) ? before.filter((one) => one !== id) : [...before.slice(-1), id]))
  const [a, b] = chosen
  return (
    <main class="sessions">
      <header class="sessions-head">
        <div class="sessions-tools">
          <h1>Sessions</h1>
          <p class="lead" role="status">
            {found && describeCount(found, q)}
            {store !== 'sessions' && ` · ${store}`}
          </p>
          <label class="search">
            <span class="sr">Search</span>
            <input
              ref={field}
              type="search"
              placeholder="Search  /"
              title="Words of a session, or filters: tool:pay, failed:*, state:paused, reason:timeout, tag:user=ann, cost>0.01, >1m, since:2026-11-01"
              maxLength={longestQuery}
              value={q}
              onInput={(event) => setQuery(event.currentTarget.value)}
            />
          </label>
          <StatusFilter view={view} q={q} onQuery={setQuery} />
          {a !== undefined && b !== undefined && (
            <a class="button primary" href={compareAddress(a, b)}>
              Compare
            </a>
          )}
        </div>
        <div class="sessions-tools">
          <SessionFilters facets={view.facets} q={q} sort={sort} onQuery={setQuery} onSort={setSort} />
          <SavedViews
            views={view.views}
            q={q}
            sort={sort}
            onShow={(shown) => {
              setQuery(shown.q)
              setSort(shown.sort)
            }}
            onSave={(views) => {
              source
                .send(paths.views, { views })
                .then(reload)
                .catch((trouble: unknown) => onProblem(formatError(trouble)))
            }}
          />
        </div>
        <SessionDays days={view.days} onReason={(reason) => setQuery(replaceTerm(q, 'reason:', reason))} />
        <SharedBudgets budgets={view.budgets} />
        {readOnly !== null && <p class="read-only">{readOnly}</p>}
      </header>
      <Refusal text={error === null ? '' : formatError(error)} />
      {total === 0 && error === null && <EmptyList view={view} q={q} />}
      {sessions.length > 0 && (
        <SessionTable hidden={hidden} sort={sort} onSort={setSort}>
          {groupRows(sessions, sort).map(({ status, rows }) => (
            <tbody key={status} class={`group group-${status}`}>
              {status !== 'all' && (
                <tr>
                  <th colSpan={10 - hidden.length} scope="rowgroup">
                    <h2>
                      {titles[status]} <small>{formatCount(view.counts[status] ?? rows.length)}</small>
                    </h2>
                  </th>
                </tr>
              )}
              {rows.map((row) => (
                <SessionItem key={row.id} row={row} source={source} chosen={chosen} onToggle={toggle} />
              ))}
            </tbody>
          ))}
        </SessionTable>
      )}
      {total > sessions.length && sessions.length > 0 && (
        <More count={total - sessions.length} shown={sessions.length} onMore={loadMore} />
      )}
    </main>
  )
}

function groupRows(
  sessions: readonly SessionRow[],
  sort: string,
): { status: SessionRow['status'] | 'all'; rows: readonly SessionRow[] }[] {
  if (sort !== 'status') return [{ status: 'all', rows: sessions }]
  return sessionStatuses
    .map((status) => ({ status, rows: sessions.filter((row) => row.status === status) }))
    .filter(({ rows }) => rows.length > 0)
}

function describeCount({ total, known, unread, isWhole }: SessionsView, q: string): string {
  const count = formatCount(q.trim() === '' ? total : known, 'session') + (isWhole ? '' : ' listed so far')
  const all = q.trim() === '' ? count : `${formatCount(total)} of ${count}`
  return q.trim() !== '' && unread > 0 ? `${all}, with ${formatCount(unread)} not read yet` : all
}

function StatusFilter({ view, q, onQuery }: { view: SessionsView; q: string; onQuery: (q: string) => void }) {
  const only = findTerm(q, 'is:')
  const choose = (status: string | null): void => onQuery(replaceTerm(q, 'is:', status))
  return (
    <div class="segments" role="group" aria-label="Status">
      <button aria-pressed={only === null} onClick={() => choose(null)}>
        All
      </button>
      {sessionStatuses
        .filter((status) => (view.counts[status] ?? 0) > 0 || only === status)
        .map((status) => (
          <button key={status} aria-pressed={only === status} onClick={() => choose(status)}>
            {titles[status]} <small>{formatCount(view.counts[status] ?? 0)}</small>
          </button>
        ))}
    </div>
  )
}

function EmptyList({ view: { known, store, unread }, q }: { view: SessionsView; q: string }) {
  if (unread > 0) return <p class="empty">No match so far. {formatCount(unread, 'session')} not read yet …</p>
  return known === 0 && q.trim() === '' ? (
    <div class="trouble">
      <h2>No sessions yet</h2>
      <p>
        The store {store} is empty. Start a run with a store, or play a rehearsal:{' '}
        <code>npx statewright run --rehearsal --studio</code>
      </p>
    </div>
  ) : (
    <p class="empty">No matching sessions</p>
  )
}

function More({ count, shown, onMore }: { count: number; shown: number; onMore: () => void }) {
  const button = useRef<HTMLButtonElement>(null)
  useEffect(() => {
    if (!button.current) return undefined
    const seen = new IntersectionObserver((entries) => {
      if (entries.some(({ isIntersecting }) => isIntersecting)) onMore()
    })
    seen.observe(button.current)
    return () => seen.disconnect()
  }, [shown])
  return (
    <button ref={button} class="quiet-button" onClick={onMore}>
      {formatCount(count)} more
    </button>
  )
}

export const pageSize = 60
/** Delay before a search after typing, and between two searches for changes, in milliseconds. */
const [typingMs, newsMs] = [120, 1_000]

function useFoundSessions(
  source: Source,
  { q, sort }: { q: string; sort: string },
  onProblem: (problem: string | null) => void,
) {
  const request = useRef({ q, sort, count: pageSize })
  const {
    value: view,
    error,
    reload,
    set,
  } = useLoaded('', () => {
    const { count: limit, ...search } = request.current
    return source.send(paths.found({ ...search, limit }))
  })
  useEffect(() => {
    if (request.current.q === q && request.current.sort === sort) return undefined
    request.current = { q, sort, count: pageSize }
    const timer = setTimeout(reload, typingMs)
    return () => clearTimeout(timer)
  }, [q, sort])
  useEffect(() => {
    const changed = new Map<string, SessionRow>()
    let frame = 0
    let news: ReturnType<typeof setTimeout> | undefined
    let loadedAt = -Infinity
    const loadNews = (): void => {
      news ??= setTimeout(
        () => {
          news = undefined
          loadedAt = performance.now()
          reload()
        },
        Math.max(50, loadedAt + newsMs - performance.now()),
      )
    }
    /** Updates the page once per frame, so that many active runs cost no more than one. */
    const put = (): void => {
      frame = 0
      const now = new Map(changed)
      changed.clear()
      set((before) => {
        const known = new Map(before.sessions.map((row) => [row.id, row]))
        if ([...now].some(([id, row]) => known.get(id)?.status !== row.status)) loadNews()
        return { ...before, sessions: before.sessions.map((row) => now.get(row.id) ?? row) }
      })
    }
    const stop = source.live(null, (message: LiveMessage) => {
      if (message.type === 'store') onProblem(message.problem)
      else if (message.type === 'gone' || message.type === 'list') loadNews()
      else if (message.type === 'session') {
        changed.set(message.row.id, message.row)
        frame ||= requestAnimationFrame(put)
      }
    })
    return () => {
      stop()
      clearTimeout(news)
      cancelAnimationFrame(frame)
    }
  }, [source])
  const loadMore = (): void => {
    request.current.count += pageSize
    reload()
  }
  return { view, error, reload, loadMore }
}
