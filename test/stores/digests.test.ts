import { memoryStore } from '../../src/index.js'
import { openDigests } from '../../src/core/sessions/store/log-digests.js'
import { describeDigests } from './digest-table.js'
import { filePlace } from './folder.js'
import { usePlace } from './use-place.js'

const { open } = usePlace(filePlace)

describeDigests('the digests of fileStore', open)

it('a store in memory keeps none, because its owner has the logs', async () => {
  expect(await openDigests(memoryStore())).toBeNull()
})
