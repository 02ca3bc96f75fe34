import type { SessionStore } from '../../src/index.js'
import type { Place } from './support.js'

/**
 * Gives each test a separate place. `open` opens another store there. `keep` registers a store that was opened otherwise. After the
 * test, all stores are closed and the place is removed.
 */
export function usePlace<Made extends Place>(makePlace: () => Made) {
  let place: Made
  const opened: SessionStore[] = []
  const keep = (store: SessionStore): SessionStore => {
    opened.push(store)
    return store
  }

  beforeEach(() => {
    place = makePlace()
  })

  afterEach(async () => {
    await Promise.all(opened.splice(0).map(async (store) => store.close()))
    await place.remove()
  })

  return { getPlace: () => place, keep, open: (now?: () => number) => keep(place.open(now)) }
}
