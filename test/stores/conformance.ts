import { createStoreChecker, storeChecks } from '../../src/testing/store/check-store.js'
import type { Place } from './support.js'

/** Optional store features, by the reason for which their checks are skipped. */
type Lack =
  | 'the store has no renewAll'
  | 'the store has no setTitle'
  | 'the store has no setMark'
  | 'the store has no purge'
  | 'the inbox has no findUnread'
  | 'the inbox has no listUnread'

/** The contract of all session stores, from `checkStore`. `shared` means that several connections to a place see the same sessions. */
export function describeStore(
  name: string,
  makePlace: () => Place,
  { shared, lacks = [] }: { shared: boolean; lacks?: Lack[] },
): void {
  describe(name, () => {
    const places = new Map<string, Place>()
    const placeOf = (id: string): Place => {
      const place = places.get(id) ?? makePlace()
      places.set(id, place)
      return place
    }
    const checker = createStoreChecker(({ place, now }) => placeOf(place).open(now), {
      shared,
      remove: (id) => places.get(id)?.remove(),
      // Failures report the seed.
      seed: Number(process.env['STATEWRIGHT_SEED'] ?? 1),
    })

    test.each(storeChecks)('$name', async (check) => {
      const { outcome, problem } = await checker.runCheck(check)
      if (outcome === 'skipped') {
        const known = shared ? lacks : [...lacks, 'shared is false, so each store has separate sessions']
        expect(known).toContain(problem)
      } else expect({ outcome, problem }).toEqual({ outcome: 'kept', problem: null })
    })
  })
}
