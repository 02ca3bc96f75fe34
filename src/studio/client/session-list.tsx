import { formatAgo, formatCount, formatDuration, formatMoney } from '../../core/format/format-words.js'
import { formatWakeTime } from '../../core/base/clock.js'
import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import type { SessionRow } from '../protocol.js'
import type { Source } from './data-source.js'
import { paths } from '../routes.js'
import { capitalize, formatShort, formatWord } from '../format.js'
import { Icon } from './icons.js'
import { useLoaded } from './loading.js'
import { StatePill } from './run-head.js'
import { formatTerm, type SessionSort } from '../session-query.js'

interface TableProps {
  /** Columns without values, `no-agents` and `no-models`. The title uses their space. */
  hidden: readonly string[]
  sort: string
  onSort: (sort: string) => void
  children: ComponentChildren
}

/** The columns after the title. Text is sorted from A to Z first, numbers from the greatest. */
const texts: readonly SessionSort[] = ['state', 'agent', 'model']
const numbers: readonly SessionSort[] = ['steps', 'duration', 'tokens', 'cost', 'updated']

export function SessionTable({ hidden, sort, onSort, children }: TableProps) {
  return (
    <table class={['session-list', ...hidden].join(' ')}>
      <thead>
        <tr>
          <th class="session-choose">
            <span class="sr">Compare</span>
          </th>
          <th scope="col">Session</th>
          {[...texts, ...numbers].map((column) => {
            const isText = texts.includes(column)
            const isUp = (sort === column) === isText
            const isSorted = sort === column || sort === `-${column}`
            return (
              <th
                key={column}
                scope="col"
                class={isText ? '' : 'number'}
                {...(isSorted && { 'aria-sort': isUp ? ('ascending' as const) : ('descending' as const) })}
              >
                <button onClick={() => onSort(sort === column ? `-${column}` : isSorted ? 'status' : column)}>
                  {column === 'updated' ? 'Age' : capitalize(column)}
                  {isSorted && <Icon name={isUp ? 'up' : 'down'} size={13} />}
                </button>
              </th>
            )
          })}
        </tr>
      </thead>
      {children}
    </table>
  )
}

interface ItemProps {
  row: SessionRow
  depth?: number
  source: Source
  chosen: readonly string[]
  onToggle: (id: string) => void
}

/** A session, with its sub-agents on demand. The small labels are for phones, where the table has no header. */
export function SessionItem({ row, depth = 0, ...rest }: ItemProps) {
  const { source, chosen, onToggle } = rest
  const { id, title, status, reason, wakeAt, failedCalls, steps, cost, updatedAt } = row
  const [isOpen, setOpen] = useState(false)
  const { value: below } = useLoaded(
    String(isOpen),
    async () => {
      if (!isOpen) return []
      const list = { q: formatTerm('parent', id), sort: 'created', limit: 500 } as const
      return (await source.send(paths.found(list))).sessions.toReversed()
    },
    // A closed row is drawn once for each change.
    isOpen ? `${row.children} ${row.records}` : '',
  )
  return (
    <>
      <tr class={depth > 0 ? 'session inner' : 'session'}>
        <td class="session-choose">
          <input
            type="checkbox"
            checked={chosen.includes(id)}
            aria-label={`Choose ${title || id} to compare`}
            onChange={() => onToggle(id)}
          />
        </td>
        <th
          scope="row"
          class="session-name"
          style={depth > 0 ? { paddingLeft: `${depth * 20}px` } : undefined}
        >
          <div class="session-line">
            <a
              href={`#/${row.value === null ? 'session' : 'machine'}/${encodeURIComponent(id)}`}
              class="session-link"
            >
              <span class="session-title">{title || row.name || id}</span>{' '}
              <small class="session-sub">{describeOrigin(row)}</small>
            </a>
            {row.children > 0 && (
              <button class="folds sub-agents" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
                {formatCount(row.children, 'sub-agent')}
                <span class="sr"> of {title || id}</span>
              </button>
            )}
          </div>
        </th>
        <td class="session-state">
          <StatePill session={row} />
          {reason !== null && reason !== 'sleeping' && reason !== row.state?.toLowerCase() && (
            <small>{formatWord(reason)}</small>
          )}
          {failedCalls > 0 && <small class="failed-calls">{formatCount(failedCalls, 'failed call')}</small>}
          {wakeAt !== null && (
            <small class="until">
              {status === 'waiting' && wakeAt <= Date.now() ? 'expired' : `until ${formatWakeTime(wakeAt)}`}
            </small>
          )}
        </td>
        <td class="session-fact">{row.agent}</td>
        <td class="session-fact">{row.models.join(', ')}</td>
        <td class="session-fact number">
          {steps === null ? '–' : formatCount(steps)}
          <small>{steps === 1 ? ' step' : ' steps'}</small>
        </td>
        <td class="session-fact number">
          {formatDuration(row.duration + (status === 'running' ? Math.max(0, Date.now() - updatedAt) : 0))}
        </td>
        <td class="session-fact number">
          {formatShort(row.tokens)}
          <small> tok</small>
        </td>
        <td class={cost === null ? 'session-fact number unknown' : 'session-fact number'}>
          {formatMoney(cost)}
        </td>
        <td class="session-fact number">
          <time dateTime={new Date(updatedAt).toISOString()}>{formatAgo(updatedAt, Date.now())}</time>
        </td>
      </tr>
      {below?.map((child) => (
        <SessionItem key={child.id} row={child} depth={depth + 1} {...rest} />
      ))}
    </>
  )
}

/** Describes the origin first, because a generated id fills a narrow column. */
function describeOrigin(row: SessionRow): string {
  const { forkedFrom, parent, holder, problem } = row
  const name = row.name ?? row.id
  return [
    ...(forkedFrom ? [`fork of ${forkedFrom.sessionId}`] : []),
    ...(parent === null ? [] : [`sub-agent of ${parent}`]),
    ...(row.title === name ? [] : [name]),
    ...(row.isAttached ? ['live'] : holder === null ? [] : [holder]),
    ...Object.entries(row.tags).map(([tag, value]) => `${tag}=${value}`),
    ...(problem === null ? [] : [problem]),
  ].join(' · ')
}
