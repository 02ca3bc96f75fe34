import { formatCount } from '../../core/format/format-words.js'
import { useState } from 'preact/hooks'
import type { SavedView, SessionsView } from '../protocol.js'
import { facetKeys, findTerm, replaceTerm, sessionSorts } from '../session-query.js'
import { capitalize } from '../format.js'

/** The names of the keys and orders that say too little by themselves. */
const names: Partial<Record<string, string>> = {
  failed: 'Failed call',
  guard: 'Halted by guard',
  status: 'Waiting first',
  updated: 'Last updated',
  created: 'Last created',
}
const toName = (key: string): string => names[key] ?? capitalize(key)

interface Menu {
  /** The beginning of the menu's words in the query. */
  start: string
  name: string
  values: readonly (readonly [value: string, text: string])[]
}

const ranges: readonly Menu[] = [
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

interface FiltersProps {
  facets: SessionsView['facets']
  q: string
  sort: string
  onQuery: (q: string) => void
  onSort: (sort: string) => void
}

/** Filters as menus. The search field shows the values of the filters as words, which can also be typed. */
export function SessionFilters({ facets, q, sort, onQuery, onSort }: FiltersProps) {
  const menus = facetKeys.flatMap((key): Menu[] => {
    const start = `${key}:`
    const values = (facets[key] ?? []).map(
      ([value, count]) => [value, `${value} (${formatCount(count)})`] as const,
    )
    if (values.length === 0 && findTerm(q, start) === null) return []
    return [{ start, name: toName(key), values: key === 'failed' ? [['*', 'Any tool'], ...values] : values }]
  })
  return (
    <details class="filters">
      <summary>Filter and sort</summary>
      <div class="filter-fields">
        {[...menus, ...ranges].map(({ start, name, values }) => (
          <MenuField
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
          <select value={sort.replace(/^-/, '')} onChange={(event) => onSort(event.currentTarget.value)}>
            {sessionSorts.map((one) => (
              <option key={one} value={one}>
                {toName(one)}
              </option>
            ))}
          </select>
        </label>
      </div>
    </details>
  )
}

interface SavedViewsProps {
  views: readonly SavedView[]
  q: string
  sort: string
  onShow: (view: Pick<SavedView, 'q' | 'sort'>) => void
  onSave: (views: SavedView[]) => void
}

export function SavedViews({ views, q, sort, onShow, onSave }: SavedViewsProps) {
  const [name, setName] = useState('')
  const isCurrent = (view: SavedView): boolean => view.q === q && view.sort === sort
  const current = views.find(isCurrent)
  const save = (event: Event): void => {
    event.preventDefault()
    if (name.trim() === '') return
    onSave([...views.filter((view) => view.name !== name.trim()), { name: name.trim(), q, sort }])
    setName('')
  }
  return (
    <>
      {views.length > 0 && (
        <div class="segments" role="group" aria-label="Saved views">
          {views.map((view) => (
            <button
              key={view.name}
              aria-pressed={isCurrent(view)}
              onClick={() => onShow(isCurrent(view) ? { q: '', sort: 'status' } : view)}
            >
              {view.name}
            </button>
          ))}
        </div>
      )}
      {current ? (
        <button class="quiet-button" onClick={() => onSave(views.filter((view) => view !== current))}>
          Delete view {current.name}
        </button>
      ) : (
        (q.trim() !== '' || sort !== 'status') && (
          <form class="save-view" onSubmit={save}>
            <input
              type="text"
              aria-label="Name of the view"
              placeholder="Name of this view"
              maxLength={60}
              value={name}
              onInput={(event) => setName(event.currentTarget.value)}
            />
            <button type="submit" disabled={name.trim() === ''}>
              Save view
            </button>
          </form>
        )
      )}
    </>
  )
}

interface MenuProps extends Omit<Menu, 'start'> {
  chosen: string | null
  onChoose: (value: string | null) => void
}

function MenuField({ name, chosen, values, onChoose }: MenuProps) {
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
