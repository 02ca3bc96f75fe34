import { type Act, answered, cut, delta, hang, midway } from '../script.js'
import { type Fault, raw } from './fault.js'

const idle = { waitMs: 20_000 }

function* forever(act: string): Iterable<Act> {
  for (;;) {
    yield act
    yield idle
  }
}

function thrown(what: () => unknown): Fault {
  // oxlint-disable-next-line prefer-promise-reject-errors -- the tested fault
  return () => ({ body: null, instead: () => Promise.reject(what()) })
}

/** Connections that break, stall and dawdle. */
export const connection = {
  'connection refused': thrown(() =>
    Object.assign(new TypeError('fetch failed'), { cause: { code: 'ECONNREFUSED' } }),
  ),
  'connection reset before headers': () => ({ before: [cut], body: null }),
  'fetch throws a text': thrown(() => 'no'),
  'fetch throws nothing': thrown(() => undefined),
  'fetch is deaf to its signal': ({ world }) => ({ body: null, instead: () => world.hang() }),
  'no headers': () => ({ before: [hang], body: null }),
  'late headers': (scene) => ({
    ...answered({ text: scene.text }, scene.stream),
    before: [{ waitMs: 90_000 }],
  }),
  'cut in the body': raw(midway(cut)),
  'stalled body': raw(midway(hang)),
  'stalled before the body': raw([hang]),
  'slow body': ({ text, stream }) => {
    const { body, ...rest } = answered({ text }, stream)
    return { ...rest, body: [...(body ?? [])].flatMap((act) => [{ waitMs: 30_000 }, act]) }
  },
  'byte by byte': ({ text, stream }) => {
    const { body, ...rest } = answered({ text }, stream)
    const bytes = Buffer.concat([...(body ?? [])].map((act) => Buffer.from(act as string)))
    return { ...rest, body: Array.from(bytes, (_, i) => bytes.subarray(i, i + 1)) }
  },
  'comments forever': raw(forever(': keep-alive\n\n')),
  'empty pieces forever': raw(forever(delta({ content: '' }))),
  'blanks forever': raw(forever(' ')),
} satisfies Record<string, Fault>
