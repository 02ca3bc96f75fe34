import { noGuards } from '../../../guards/roster.js'
import type { AgentConfigInput, PresetName } from '../../../machines/agent/config.js'
import { type ConfigError, configError } from '../base/errors.js'
import { findNearestName } from '../base/text.js'

const openhuman = {
  limits: { maxSteps: 10 },
  guardrails: {
    ...noGuards,
    maxRepeatedToolSteps: 3,
    repeatedCall: { haltAt: 'reached', counts: 'all', onRepeat: 'halt', onHalt: 'pause' },
    repeatedOutput: { rounds: 4, strict: true, onHalt: 'pause' },
    failing: {
      identical: 3,
      any: 6,
      transientIdentical: 8,
      transientAny: 12,
      policyDenied: 2,
      onRepeat: 'halt',
      onHalt: 'pause',
    },
    terminalDelegation: { onHalt: 'pause' },
  },
} as const satisfies AgentConfigInput

/**
 * Settings that reproduce other agent loops, to spread into `createAgent`. If a source contradicts itself, the
 * preset follows its documentation; docs/presets.md lists the choices.
 * @example createAgent({ ...presets.openhuman, model, tools })
 */
export const presets = /* @__PURE__ */ rejectUnknownNames({
  /**
   * The 4th identical batch is not executed, regardless of its results. Budgets apply immediately after the response.
   * An empty response ends the turn.
   */
  aar: {
    limits: { maxSteps: 50, timeoutMs: 0 },
    budget: { scope: 'session', onOvershoot: 'exceeded', finishBatch: false },
    completion: { onMissingEnd: 'accept' },
    guardrails: {
      ...noGuards,
      maxTokensRecoveries: 2,
      emptyAnswer: null,
      maxRepeatedToolSteps: 3,
      reserveTokens: 512,
      reserveCostFraction: 0.1,
      repeatedCall: { haltAt: 'next', counts: 'all', valueChars: 200, onRepeat: 'halt', onHalt: 'error' },
    },
  },

  /**
   * Stops after the 3rd identical successful batch or the 4th identical output, as a resumable checkpoint with the
   * last text from the model.
   */
  openhuman,

  /** The same guards for dispatched tasks and skills, with their higher step limit. */
  openhumanTask: { ...openhuman, limits: { maxSteps: 200 } },

  /**
   * `max_infer_iters`: N inferences per turn, 10 by default. The calls of the last inference are executed. A truncated
   * response is final. There are no guards. Shields are not plain data, so pass them separately as `shields: { input,
   * output }`. A violation ends the turn with its message (`BLOCKED`).
   */
  llamaStack: {
    limits: { maxSteps: 10 },
    guardrails: { ...noGuards, maxTokensRecoveries: 0, emptyAnswer: null },
  },

  /**
   * Limits on turns, tokens and output tokens per invocation. A running batch completes, and a natural end takes
   * precedence.
   */
  strands: {
    limits: { maxSteps: null },
    budget: { scope: 'run', onOvershoot: 'complete', finishBatch: true },
    guardrails: { ...noGuards, emptyAnswer: null },
  },
} as const satisfies Record<PresetName, AgentConfigInput>)

/** Throws a ConfigError about `subject` for an unknown preset. */
export function findPreset(name: string, subject: string): AgentConfigInput {
  if (Object.hasOwn(presets, name)) return presets[name as PresetName]
  throw unknownPresetError(name, Object.keys(presets), subject)
}

function unknownPresetError(name: string, names: readonly string[], subject: string): ConfigError {
  const match = findNearestName(name, names)
  const hint = match === undefined ? `The presets are ${names.join(', ')}.` : `Did you mean '${match}'?`
  return configError(`There is no preset '${name.slice(0, 64)}'. ${hint}`, subject)
}

/** Spreading undefined is valid, so a misspelled name would silently use the defaults. */
function rejectUnknownNames<Presets extends Record<string, AgentConfigInput>>(all: Presets): Presets {
  return new Proxy(all, {
    get(_, name) {
      // Inspectors and test matchers read other properties, such as symbols and methods of `Object`.
      const isName = typeof name === 'string' && /^[a-z]\w*$/i.test(name)
      if (isName && !(name in all) && !commonPropertyNames.includes(name))
        throw unknownPresetError(name, Object.keys(all), `presets.${name}`)
      return Reflect.get(all, name) as unknown
    },
  })
}

/** Properties that `await`, JSON and matchers read from any object. */
const commonPropertyNames = ['then', 'toJSON', 'asymmetricMatch', 'nodeType', 'tagName']
