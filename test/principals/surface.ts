import { type Agents, StatewrightError } from '../../src/index.js'
import type { Process, World } from './world.js'

/**
 * Who uses a surface. Of a page: the person whose session it is and who may go on with it, another person who may read the
 * same sessions, a person with other sessions, and a request without a person (`nobody`). All else is used by the operator of the process.
 */
export const people = ['owner', 'reader', 'stranger', 'nobody'] as const
export type Who = (typeof people)[number] | 'operator'

/** What a surface is used for, on the session of the cell. */
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

/** Where a surface is used: by whom, in which process, on a session that stands how. */
export interface Place {
  world: World
  process: Process
  who: Who
  /** The call that waits, or would. */
  question: { callId: string; fingerprint: string; messageId?: string }
  /** Of a surface that is a command: where it is run. */
  cwd?: string | undefined
}

/** What came of it, as its user is told. */
export interface Told {
  /** The code of a refusal. */
  refused: string | null
  /** All that is shown. */
  shown: string
}

export interface Surface {
  /** As `derived.ts` finds it. */
  of: string
  /** What sets it apart from others of the same place. */
  as?: string
  does: Deed
  /** Whether it tells people apart. */
  knows: 'people' | 'operator'
  /** Which agents can be behind it; default: any. `listed`: those of `defineAgents`. `none`: the session is its own affair. */
  agents?: 'any' | 'listed' | 'none'
  /** It shows no words of the session to any user. */
  isSilent?: true
  use(place: Place): Promise<Told>
}

/** What an act of a library comes to. */
export async function toldBy(act: () => unknown): Promise<Told> {
  try {
    return { refused: null, shown: JSON.stringify(await act()) ?? '' }
  } catch (error) {
    return { refused: codeOf(error), shown: String(error) }
  }
}

/** A host tells its engine what was refused in the words of a terminal error: `code: message`. */
function codeOf(error: unknown): string {
  if (error instanceof StatewrightError) return error.code
  return /^(\w+): /.exec((error as Error).message)?.[1] ?? `untyped: ${String(error)}`
}

/** What the operator of the process uses. */
export function operator(
  of: string,
  does: Deed,
  act: (place: Place) => unknown,
  more: Partial<Pick<Surface, 'as' | 'agents' | 'isSilent'>> = {},
): Surface {
  return { of, does, knows: 'operator', ...more, use: (place) => toldBy(() => act(place)) }
}

/** The agents of the process, for a surface that takes a list of them. */
export function listOf({ process: { agents } }: Place): Agents {
  if (agents) return agents
  throw new Error('The unnamed agent is in no list.')
}
