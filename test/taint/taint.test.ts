import { type Cell, cells, entrances, nameOf } from './tables.js'
import { leaksOf } from './world.js'

/**
 * `STATEWRIGHT_TAINT=all` plays the whole table. Without it, the test plays a part that changes every day.
 */
const isWhole = process.env.STATEWRIGHT_TAINT === 'all'

/**
 * One cell with one means of withholding for a sixteenth of the ways in, which changes daily. Every third
 * cell has all features at once.
 */
function sample(all: readonly Cell[]): Cell[] {
  const day = Math.floor(Date.now() / 86_400_000)
  return Object.keys(entrances).flatMap((entrance, i) => {
    if ((day + i) % 16 !== 0) return []
    const own = all.filter((cell) => cell.entrance === entrance)
    const fullest = Math.max(...own.map(({ on }) => on.length))
    const some = own.filter(({ on }) => (on.length === fullest) === ((day + i) % 32 === 0))
    return some.slice((day * 7 + i) % some.length).slice(0, 1)
  })
}

const played = isWhole ? cells() : sample(cells())

describe.each([...new Set(played.map(({ entrance }) => entrance))])(
  'text planted in %s appears nowhere else',
  (entrance) => {
    test.each(
      played.filter((cell) => cell.entrance === entrance).map((cell) => [nameOf(cell), cell] as const),
    )(
      '%s',
      async (_, cell) => {
        const { leaks, planted } = await leaksOf(cell)
        expect(leaks).toEqual([])
        expect(planted).toBe(true)
      },
      60_000,
    )
  },
)
