import * as fc from 'fast-check'
import { getInitialGuardrails, startTurn, resetGuard, restoreGuardrails } from '../../guards/state.js'
import { mostUserState, toUserState, getUserState } from '../../guards/user-state.js'

describe('the state of a custom guard', () => {
  test('is any JSON of at most 2 KB, copied', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const plain = JSON.parse(JSON.stringify(value)) as typeof value
        const bytes = Buffer.byteLength(JSON.stringify(plain))
        expect(toUserState(plain)).toEqual(
          bytes <= mostUserState ? { state: plain } : { problem: expect.stringContaining(`${bytes} bytes`) },
        )
      }),
    )
  })

  test('is JSON for any input, or a sentence explains why not', () => {
    fc.assert(
      fc.property(
        fc.anything({ withBigInt: true, withDate: true, withMap: true, withSet: true }),
        (value) => {
          const result = toUserState(value)
          if ('problem' in result) expect(result.problem).not.toBe('')
          else expect(JSON.parse(JSON.stringify(result.state))).toEqual(result.state)
        },
      ),
    )
  })

  test('omits undefined values, and nothing else', () => {
    expect(toUserState({ a: 1, b: undefined })).toEqual({ state: { a: 1 } })
    for (const lost of [
      undefined,
      [undefined],
      { a: () => 1 },
      { a: Symbol('a') },
      { a: { toJSON: () => 1 } },
    ])
      expect(toUserState(lost)).toEqual({ problem: expect.stringContaining('is not plain JSON') })
  })

  test('may be null, and names of Object.prototype have no state', () => {
    expect(getUserState({ g: null }, 'g', 1)).toBeNull()
    expect(getUserState({}, 'constructor', 1)).toBe(1)
  })
})

describe('with the state of all guards', () => {
  const state = { ...getInitialGuardrails(), user: { one: { n: 1 }, two: [2] } }

  test('is stored and restored, and a session without it loads', () => {
    expect(restoreGuardrails(JSON.parse(JSON.stringify(state)))).toEqual({ state })
    const { user: _, ...older } = state
    expect(restoreGuardrails(older)).toEqual({ state: { ...state, user: {} } })
  })

  test('restarts with a note if it is damaged', () => {
    for (const user of [[], 'x', { one: 'x'.repeat(5000) }]) {
      expect(restoreGuardrails({ ...state, user })).toEqual({
        state: { ...state, user: {} },
        note: expect.stringContaining('user'),
      })
    }
  })

  test('of one guard is reset alone, and of all by a new user message', () => {
    expect(resetGuard(state, 'user_guard', 'one')).toEqual({ ...state, user: { two: [2] } })
    expect(startTurn(state).user).toEqual({})
  })
})
