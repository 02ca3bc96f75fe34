import { truncateLine, toEvidence, lastWordsAsked } from './lib/words.js'
import * as is from './lib/stored.js'
import { type OnHalt, onHalt } from './lib/settings.js'
import { type ChildOutcome, type Guard, ok } from './types.js'

/** Settings for sub-agents that cannot succeed, because the account is exhausted or the model is misconfigured. */
export interface TerminalDelegationConfig {
  /** How to halt: `pause` pauses the run, `error` ends it in `ERROR`. Defaults to `error`. */
  onHalt: OnHalt
}

const whatToDo = {
  provider_quota:
    'the account at its provider is exhausted. Add credit there or give it another account, then run again',
  provider_config:
    "its provider rejected the model, the key or the parameters. Correct the sub-agent's configuration, then run again",
}

type TerminalCode = keyof typeof whatToDo

const shape = { due: is.nullOr(is.shape({ tool: is.text, code: isTerminal, message: is.text })) }

export type TerminalDelegationState = is.Stored<typeof shape>

/** An exhausted account or wrong configuration is terminal. A sub-agent at one of its limits is unfinished. */
export const terminalDelegation: Guard<
  TerminalDelegationState,
  TerminalDelegationConfig,
  'terminal_delegation'
> = {
  reasons: ['terminal_delegation'],
  settings: { onHalt },
  defaults: { onHalt: 'error' },
  isOn: true,
  initial: { due: null },

  observe(state, fact) {
    if (fact.type === 'results') {
      for (const { name, child } of fact.results) {
        if (!isTerminalChild(child)) continue
        const message = truncateLine(toEvidence(child.message), 240)
        return { due: { tool: truncateLine(name, 64), code: child.code, message } }
      }
    }
    return state.due ? { due: null } : state
  },

  verdict({ due }, config) {
    if (!due) return ok
    return {
      action: 'halt',
      guard: 'terminal_delegation',
      evidence: toEvidence(
        `${due.tool} ended in ERROR with ${due.code}${due.message ? `: ${due.message}` : ''}`,
      ),
      message:
        `The sub-agent ${due.tool} cannot continue: ${whatToDo[due.code]}. ` +
        'To let the agent continue without it, set guardrails.terminalDelegation to null.',
      ...(config.onHalt === 'pause' && { lastWords: lastWordsAsked }),
    }
  },

  restore: is.createRestore(shape),
}

export function isTerminalChild(
  child: ChildOutcome | undefined,
): child is ChildOutcome & { code: TerminalCode } {
  return child?.state === 'ERROR' && isTerminal(child.code)
}

function isTerminal(code: unknown): code is TerminalCode {
  return typeof code === 'string' && Object.hasOwn(whatToDo, code)
}
