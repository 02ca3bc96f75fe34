import { describeCrowd, describeSharing } from './describe-crowd.js'
import { describeInbox } from './describe-inbox.js'
import { describeLease } from './describe-lease.js'
import { describeList } from './describe-list.js'
import { describeLog } from './describe-log.js'
import type { Place, Subject } from './support.js'

/** What every session store does. `shared`: several connections to a place see the same sessions. */
export function describeStore(name: string, makePlace: () => Place, { shared }: { shared: boolean }): void {
  describe(name, () => {
    const subject = {} as Subject

    beforeEach(() => {
      subject.time = 1_700_000_000_000
      subject.place = makePlace()
      subject.store = subject.place.open(() => subject.time)
    })
    afterEach(async () => {
      await subject.store.close()
      await subject.place.remove()
    })

    describeLog(subject)
    describeLease(subject)
    describeList(subject)
    describeInbox(subject)
    describeCrowd(subject)
    if (shared) describeSharing(subject)
  })
}
