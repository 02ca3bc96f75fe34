import * as z from 'zod'
import { turnSchema } from '../../../src/rehearsal/turn-schema.js'
import { presets } from '../../../src/index.js'

/** The schemas for key completion in the editors. The readers report the errors. */
export const scriptSchema: object = {
  properties: {
    turns: { items: z.toJSONSchema(turnSchema, { io: 'input', unrepresentable: 'any' }) },
    onExhausted: { enum: ['error', 'repeatLast', 'loop'] },
    name: {},
    description: {},
  },
}

const keys = (names: string): Record<string, object> =>
  Object.fromEntries(names.split(' ').map((name) => [name, {}]))
const onHalt = { enum: ['pause', 'error'] }
const rule = { properties: keys('nudgeAt blockAt haltAt') }

/** The most common settings. */
export const settingsSchema: object = {
  properties: {
    ...keys('instructions sampling retry completion context structured'),
    preset: { enum: Object.keys(presets) },
    limits: {
      properties: {
        ...keys('maxSteps timeoutMs tokenBudget outputTokens costLimit'),
        onLimit: { enum: ['stop', 'conclude'] },
      },
    },
    budget: {
      properties: {
        scope: { enum: ['run', 'session'] },
        onOvershoot: { enum: ['complete', 'exceeded'] },
        finishBatch: {},
      },
    },
    guardrails: {
      properties: {
        ...keys('emptyAnswer maxTokensRecoveries terminalDelegation'),
        progress: { properties: { stale: rule, failing: rule, onHalt } },
        repeatedCall: { properties: { ...keys('haltAt counts'), onHalt } },
        repeatedOutput: { properties: { ...keys('rounds strict'), onHalt } },
        cycle: { properties: { onHalt } },
        failing: { properties: { onHalt } },
      },
    },
  },
}
