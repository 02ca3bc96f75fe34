import { type Agents, StatewrightError } from '../../src/index.js'
import type { Process, World } from './world.js'

/**
 * The user of a surface. On a page: the session's owner, who may continue it, a reader of the same sessions,
 * a person with other sessions, and a request without a person (`nobody`). The operator of the process uses
 * all other surfaces.
 */
export const people = ['owner', 'reader', 'stranger', 'nobody'] as const
export type Who = (typeof people)[number] | 'operator'

/** The use of a surface on the session of the cell. */
export type Deed =
  | 'begin'
  | 'call again'
  | 'branch'
  | 'turn back'
  | 'continue'
  | 'answer'
  | 'steer'
  | 'stop'
  | 'look'
  | 'follow'
  | 'fork'
  | 'fork and run'
  | 'forget'
  | 'mark'
  | 'grant'
  | 'revoke'

/** The place of a use: person, process, session state. */
export interface Place {
  world: World
  process: Process
  who: Who
  /** The call that waits, or would wait. */
  question: { callId: string; fingerprint: string; messageId?: string }
  /** The id of the grant that the session has, or would have. Only for a surface that revokes grants. */
  grant: string
  /** For a command, its working folder. */
  cwd?: string | undefined
}

/** The outcome, as reported to its user. */
export interface Told {
  /** The code of a refusal. */
  refused: string | null
  /** All displayed text. */
  shown: string
}

export interface Surface {
  /** As returned by `derived.ts`. */
  of: string
  /** Distinguishes it from others of the same place. */
  as?: string
  does: Deed
  /** Whether it distinguishes between people. */
  knows: 'people' | 'operator'
  /**
   * The possible agents behind it. Default: any. `listed` means the agents of `defineAgents`. `none` means
   * that the session needs no agent.
   */
  agents?: 'any' | 'listed' | 'none'
  /** It shows no session text to any user. */
  isSilent?: true
  use(place: Place): Promise<Told>
}

/** The outcome of a library call. */
export async function toldBy(act: () => unknown): Promise<Told> {
  try {
    return { refused: null, shown: JSON.stringify(await act()) ?? '' }
  } catch (error) {
    return { refused: codeOf(error), shown: String(error) }
  }
}

/** A host reports a refusal to its engine as the message of a terminal error: `code: message`. */
function codeOf(error: unknown): string {
  if (error instanceof StatewrightError) return error.code
  return /^(\w+): /.exec((error as Error).message)?.[1] ?? `untyped: ${String(error)}`
}

/** The operator's setup of the process. */
export function operator(
  of: string,
  does: Deed,
  act: (place: Place) => unknown,
  more: Partial<Pick<Surface, 'as' | 'agents' | 'isSilent'>> = {},
): Surface {
  return { of, does, knows: 'operator', ...more, use: (place) => toldBy(() => act(place)) }
}

/** The agents of the process, for a surface that accepts a list. */
export function listOf({ process: { agents } }: Place): Agents {
  if (agents) return agents
  throw new Error('The unnamed agent is in no list.')
}
