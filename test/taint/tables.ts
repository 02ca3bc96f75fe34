import type { ShieldPoint } from '../../src/core/shields/index.js'

/** What must be readable nowhere. Its halves are harmless by themselves; only its end is searched for. */
export const halves = ['falcon-', 'zebra'] as const
export const canary = halves.join('')
export const searched: string = halves[1]

/** Everything that words can come in by, as slots of one scenario. Each slot says something harmless when nothing is planted. */
export interface Slots {
  input: string
  /** A message of several parts. */
  parts: readonly string[]
  fileName: string
  fileText: string
  address: string
  attachment: string
  steering: string
  reply: string
  /** What the second run begins with, where it was queued. */
  queued: string
  /** Words beside the calls of the first answer. */
  aside: string
  reasoning: string
  callName: string
  callArguments: string
  /** Of a call that the provider asks about before it makes it. */
  hostedName: string
  hostedUrl: string
  edit: string
  /** Why a person refuses every call that needs approval; without it they are approved. */
  rejection: string
  toolResult: string
  toolError: string
  /** Words, the name and the text of a file that a tool returns; without any it returns a text. */
  toolMedia: { text?: string; filename?: string; fileText?: string }
  progress: string
  clientOutput: string
  mcpResult: string
  /** What the server asks a person in the middle of its call; '' asks nothing. */
  mcpQuestion: string
  childWords: string
  childFailure: string
  /** The last answer, in the pieces in which it comes. */
  answer: readonly string[]
  refusal: string
  providerMessage: string
  providerCode: string
}

/** What a run can have besides: each is on by itself, and all of them together. */
export const others = [
  'one response instead of a stream',
  'the Responses API',
  'an answer in pieces',
  'an output schema',
  'approval',
  'an edit',
  'a client call',
  'a hosted approval',
  'a sub-agent',
  'MCP',
  'harmless shields everywhere',
  'guards that watch',
  'a window to fit',
  'a budget that is waited for',
  'an interactive run',
  'a store that answers later',
  'another process at each rest',
  'told from another process',
  'driven',
  'forks and replays of every record',
  'an inspector',
  'the command line',
] as const

export type Other = (typeof others)[number]

export interface Entrance {
  /** Where shields stand in its way; none where what is planted is the credentials' business. */
  points: readonly ShieldPoint[]
  plant: Partial<Slots>
  /** Without these it does not come in. */
  needs?: readonly Other[]
  /** With these it does not come in, or another way. */
  conflicts?: readonly Other[]
  /** No shield ever sees it: it is withheld because none can. */
  isUnseen?: true
  /** What else the world has to do. */
  scene?: 'credentials' | 'cut call' | 'child fails' | 'conclusion' | 'cancelled' | 'client fails'
}

const says = `It is ${canary}.`

/** Every way in, and the shields that stand there. */
export const entrances: Readonly<Record<string, Entrance>> = {
  'the user’s text': { points: ['input'], plant: { input: says } },
  'a text in parts': { points: ['input'], plant: { parts: [`It is ${halves[0]}`, `${halves[1]}.`] } },
  'the name of a file': { points: ['input'], plant: { fileName: `${canary}.txt` } },
  'the text of a file': { points: ['input'], plant: { fileText: says } },
  'the address of a picture': { points: ['input'], plant: { address: `https://a.example/${canary}.png` } },
  // Runs that are driven take no attachments.
  'an attachment': { points: ['input'], plant: { attachment: says }, conflicts: ['driven'] },
  steering: { points: ['input'], plant: { steering: says } },
  'steering that comes too late': {
    points: ['input'],
    plant: { steering: says },
    scene: 'conclusion',
    isUnseen: true,
  },
  'a reply': { points: ['input'], plant: { reply: says }, needs: ['an interactive run'] },
  // What drives says it with its own options.
  'a queued message': { points: ['input'], plant: { queued: says }, conflicts: ['driven'] },
  'words beside calls': { points: ['output'], plant: { aside: says } },
  reasoning: { points: ['output'], plant: { reasoning: says } },
  'the answer': { points: ['output'], plant: { answer: [says] } },
  'the answer in pieces': {
    points: ['output'],
    plant: { answer: [`It is ${halves[0]}`, `${halves[1]}.`] },
    needs: ['an answer in pieces'],
    conflicts: ['an output schema'],
  },
  'a refusal': { points: ['output'], plant: { refusal: says } },
  'a key of an object': {
    points: ['output'],
    plant: { answer: [JSON.stringify({ done: true, [canary]: 1 })] },
    needs: ['an output schema'],
  },
  'the last words at a limit': { points: ['output'], plant: { answer: [says] }, scene: 'conclusion' },
  'the answer, stopped before it is cleared': {
    points: ['output'],
    plant: { answer: [says] },
    scene: 'cancelled',
    isUnseen: true,
    conflicts: ['driven'],
  },
  'the user’s text, stopped before it is cleared': {
    points: ['input'],
    plant: { input: says },
    scene: 'cancelled',
    isUnseen: true,
    conflicts: ['driven'],
  },
  'arguments, stopped before they are cleared': {
    points: ['toolInput'],
    plant: { callArguments: JSON.stringify({ text: says }) },
    scene: 'cancelled',
    isUnseen: true,
    conflicts: ['driven'],
  },
  'a result, stopped before it is cleared': {
    points: ['toolOutput'],
    plant: { toolResult: says },
    scene: 'cancelled',
    isUnseen: true,
    conflicts: ['driven'],
  },
  'the arguments of a call': {
    points: ['toolInput'],
    plant: { callArguments: JSON.stringify({ text: says }) },
  },
  'a key of the arguments': {
    points: ['toolInput'],
    plant: { callArguments: JSON.stringify({ [canary]: 1 }) },
  },
  'broken arguments': { points: ['toolInput'], plant: { callArguments: `{"text":"${says}` } },
  'the arguments of a call that is cut off': {
    points: ['toolInput'],
    plant: { callArguments: `{"text":"${says}` },
    scene: 'cut call',
    isUnseen: true,
  },
  'the arguments of a hosted call': {
    points: ['toolInput'],
    plant: { hostedUrl: says },
    needs: ['a hosted approval'],
  },
  'the name of a hosted call': {
    points: ['toolInput'],
    plant: { hostedName: canary },
    needs: ['a hosted approval'],
  },
  'the name of a call': { points: ['toolInput'], plant: { callName: canary } },
  'edited arguments': {
    points: ['toolInput'],
    plant: { edit: says },
    needs: ['approval', 'an edit'],
  },
  'why a person refuses a call': {
    points: ['input', 'toolOutput'],
    plant: { rejection: says },
    needs: ['approval'],
  },
  'a result': { points: ['toolOutput'], plant: { toolResult: says } },
  'words beside a file of a result': { points: ['toolOutput'], plant: { toolMedia: { text: says } } },
  'the name of a file in a result': {
    points: ['toolOutput'],
    plant: { toolMedia: { filename: `${canary}.txt` } },
  },
  'the text of a file in a result': { points: ['toolOutput'], plant: { toolMedia: { fileText: says } } },
  'an error of a tool': { points: ['toolOutput'], plant: { toolError: says } },
  progress: { points: ['toolOutput'], plant: { progress: says }, isUnseen: true },
  'what a client hands in': {
    points: ['toolOutput'],
    plant: { clientOutput: says },
    needs: ['a client call'],
  },
  'an error of a client': {
    points: ['toolOutput'],
    plant: { clientOutput: says },
    needs: ['a client call'],
    scene: 'client fails',
  },
  'a result over MCP': { points: ['toolOutput'], plant: { mcpResult: says }, needs: ['MCP'] },
  'what an MCP server asks': { points: ['toolOutput'], plant: { mcpQuestion: says }, needs: ['MCP'] },
  'what a sub-agent says, calls and reads': {
    points: ['toolOutput'],
    plant: { childWords: says },
    needs: ['a sub-agent'],
  },
  'why a sub-agent failed': {
    points: ['toolOutput'],
    plant: { childFailure: says },
    needs: ['a sub-agent'],
    scene: 'child fails',
    isUnseen: true,
  },
  'a key in the words of a provider': {
    points: [],
    plant: { providerMessage: `The key ${canary} is wrong.`, providerCode: 'wrong_key' },
    scene: 'credentials',
  },
  'a key in the code of a provider': {
    points: [],
    plant: { providerMessage: 'No.', providerCode: `wrong_${canary}` },
    scene: 'credentials',
  },
}

/** How the key came to the provider: the entrance of credentials, once more for each. */
export const ways = ['option', 'function', 'environment', 'header', 'query'] as const

export type Way = (typeof ways)[number]

export interface Cell {
  entrance: string
  /** Null where what withholds is not a shield. */
  shield: { point: ShieldPoint; action: 'block' | 'redact' } | null
  way: Way
  /** What is on. */
  on: readonly Other[]
}

/** Every entrance, with everything that may withhold it, alone, with each other feature, and with all of them. */
export function cells(): Cell[] {
  return Object.entries(entrances).flatMap(([entrance, { points, needs = [], conflicts = [] }]) => {
    const withheldBy: (Pick<Cell, 'shield' | 'way'> & object)[] =
      points.length === 0
        ? ways.map((way) => ({ shield: null, way }))
        : points.flatMap((point) =>
            (['block', 'redact'] as const).map((action) => ({
              shield: { point, action },
              way: 'option' as const,
            })),
          )
    const free = others.filter((other) => !needs.includes(other) && !conflicts.includes(other))
    const isInteractive = needs.includes('an interactive run')
    const alone = free.filter((other) => !isInteractive || other !== 'driven').map((other) => [other])
    // `runSession` takes no interactive runs.
    const byHandle = free.filter((other) => other !== 'driven')
    const driven = free.includes('driven') && !isInteractive
    const sets = [
      [],
      ...alone,
      byHandle,
      ...(driven ? [free.filter((other) => other !== 'an interactive run')] : []),
    ]
    return withheldBy.flatMap((by) => sets.map((set) => ({ entrance, ...by, on: [...needs, ...set] })))
  })
}

export function nameOf({ entrance, shield, way, on }: Cell): string {
  const by = shield === null ? `from the ${way}` : `${shield.point} ${shield.action}`
  return `${entrance}, ${by}, with ${on.length === 0 ? 'nothing else' : on.join(' + ')}`
}
