/** The order in which a run enters its states. Other states come last. */
const places = [
  'no session yet',
  'RUNNING.asking.requesting',
  'RUNNING.asking.backingOff',
  'WAITING_FOR_TOOL.executing',
  'WAITING_FOR_INPUT.approval',
  'COMPLETED',
]

const columns = ['kills', 'equal', 'interrupted', 'wrong']

/** The kill points, their kinds, and the outcomes of the sessions, as text. */
export function killTable(sessions) {
  const rows = new Map()
  for (const { kills, problems } of sessions) {
    for (const { place, kind, isInDoubt } of kills) {
      const key = `${rank(place)} ${place}|${kind}`
      const row = rows.get(key) ?? { place, kind, kills: 0, equal: 0, interrupted: 0, wrong: 0 }
      row.kills += 1
      row[problems.length > 0 ? 'wrong' : isInDoubt ? 'interrupted' : 'equal'] += 1
      rows.set(key, row)
    }
  }
  const sorted = [...rows].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, row]) => row)
  const sum = (column) => sorted.reduce((total, row) => total + row[column], 0)
  const total = {
    place: 'all',
    kind: '',
    ...Object.fromEntries(columns.map((column) => [column, sum(column)])),
  }
  const titles = { place: 'killed in', kind: 'how', kills: 'kills', equal: 'equal', wrong: 'wrong' }
  const lines = [{ ...titles, interrupted: 'equal but for interrupted calls' }, ...sorted, total]
  return { text: lines.map(lineOf).join('\n'), total }
}

function rank(place) {
  const at = places.indexOf(place)
  return at === -1 ? places.length : at
}

function lineOf({ place, kind, kills, equal, interrupted, wrong }) {
  const numbers = [kills, equal, interrupted, wrong].map((value, i) => `${value}`.padStart(i === 2 ? 33 : 7))
  return `${place.padEnd(28)}${kind.padEnd(20)}${numbers.join('')}`
}
