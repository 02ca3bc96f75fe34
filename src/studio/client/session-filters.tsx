import { formatCount } from '../../core/format/format-words.js'
import type { SessionsView } from '../protocol.js'
import { findTerm, type QueryKey, replaceTerm, type SessionSort } from '../session-query.js'

const names: Partial<Record<QueryKey, string>> = {
  state: 'State',
  reason: 'Reason',
  tool: 'Tool',
  guard: 'Guard that halted',
  model: 'Model',
  agent: 'Agent',
  tag: 'Tag',
}

const ranges: { start: string; name: string; values: readonly (readonly [value: string, text: string])[] }[] =
  [
    {
      start: 'cost>=',
      name: 'Cost',
      values: [
        ['0.01', '$0.01 or more'],
        ['0.1', '$0.10 or more'],
        ['1', '$1 or more'],
        ['10', '$10 or more'],
      ],
    },
    {
      start: 'duration>=',
      name: 'Duration',
      values: [
        ['10s', '10 s or more'],
        ['1m', '1 min or more'],
        ['1h', '1 h or more'],
        ['1d', '1 day or more'],
      ],
    },
  ]

const sorts: Record<SessionSort, string> = {
  standing: 'Waiting first',
  updated: 'Last updated',
  created: 'Created last',
  cost: 'Cost',
  tokens: 'Tokens',
  steps: 'Steps',
  duration: 'Duration',
}

interface FiltersProps {
  facets: SessionsView['facets']
  q: string
  sort: SessionSort
  onQuery: (q: string) => void
  onSort: (sort: SessionSort) => void
}

/** Filters as menus. The search field shows their values as words that can also be typed. */
export function SessionFilters({ facets, q, sort, onQuery, onSort }: FiltersProps) {
  const keys = (Object.keys(names) as QueryKey[]).filter((key) => {
    const values = facets[key] ?? []
    return values.length > 0 || findTerm(q, `${key}:`) !== null
  })
  return (
    <details class="filters">
      <summary>Filter and sort</summary>
      <div class="filter-fields">
        {keys.map((key) => (
          <Menu
            key={key}
            name={names[key] ?? key}
            chosen={findTerm(q, `${key}:`)}
            values={(facets[key] ?? []).map(([value, count]) => [value, `${value} (${formatCount(count)})`])}
            onChoose={(value) => onQuery(replaceTerm(q, `${key}:`, value))}
          />
        ))}
        {ranges.map(({ start, name, values }) => (
          <Menu
            key={start}
            name={name}
            chosen={findTerm(q, start)}
            values={values}
            onChoose={(value) => onQuery(replaceTerm(q, start, value))}
          />
        ))}
        <label>
          Updated since
          <input
            type="date"
            value={findTerm(q, 'since:') ?? ''}
            onInput={({ currentTarget: { value } }) =>
              onQuery(replaceTerm(q, 'since:', value === '' ? null : value))
            }
          />
        </label>
        <label>
          Sort by
          <select value={sort} onChange={(event) => onSort(event.currentTarget.value as SessionSort)}>
            {(Object.keys(sorts) as SessionSort[]).map((one) => (
              <option key={one} value={one}>
                {sorts[one]}
              </option>
            ))}
          </select>
        </label>
      </div>
    </details>
  )
}

interface MenuProps {
  name: string
  chosen: string | null
  values: readonly (readonly [value: string, text: string])[]
  onChoose: (value: string | null) => void
}

function Menu({ name, chosen, values, onChoose }: MenuProps) {
  const isListed = chosen === null || values.some(([value]) => value === chosen)
  return (
    <label>
      {name}
      <select
        value={chosen ?? ''}
        onChange={({ currentTarget: { value } }) => onChoose(value === '' ? null : value)}
      >
        <option value="">any</option>
        {!isListed && <option value={chosen}>{chosen}</option>}
        {values.map(([value, text]) => (
          <option key={value} value={value}>
            {text}
          </option>
        ))}
      </select>
    </label>
  )
}
