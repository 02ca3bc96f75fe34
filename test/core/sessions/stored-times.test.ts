import { type AgentContext, createContext, noFeatures } from '../../../machines/agent/context.js'
import { defaultConfig } from '../../../src/core/config/defaults.js'
import { findContextFault } from '../../../src/core/sessions/session-schema.js'
import { createSessionState } from '../../../src/core/sessions/session-state.js'

const call = { id: 'c', name: 'pay', arguments: '{}', needs: 'approval' as const }
const question = { callId: 'q', name: 'pay', arguments: '{}' }

function findFault(one: object): string | null {
  const context = createContext({
    ...createSessionState(),
    now: 0,
    runId: 'r',
    sessionId: 's',
    config: defaultConfig,
    tools: {},
    features: noFeatures,
    input: [],
  })
  return findContextFault({ ...context, calls: [one] } as unknown as AgentContext)
}

test('a question with a valid time is accepted', () => {
  expect(findFault({ ...call, expiresAt: 1 })).toBeNull()
  expect(findFault({ ...call, needs: 'child', questions: [{ ...question, expiresAt: 1 }] })).toBeNull()
})

test.each(['never', null, 1e300, {}])('a question that expires at %j is refused', (expiresAt) => {
  expect(findFault({ ...call, expiresAt })).toMatch(/expiresAt/)
  expect(findFault({ ...call, needs: 'child', questions: [{ ...question, expiresAt }] })).toMatch(/expiresAt/)
})
