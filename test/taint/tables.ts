import type { ShieldPoint } from '../../src/core/shields/index.js'

/**
 * The text that no exit may reveal. Its halves are harmless separately, and only its end is searched for.
 */
export const halves = ['falcon-', 'zebra'] as const
export const canary = halves.join('')
export const searched: string = halves[1]

/** All text inputs, as slots of one scenario. Each slot has a harmless text by default. */
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
  /** The second run's input, where it was queued. */
  queued: string
  /** Text next to the calls of the first answer. */
  aside: string
  reasoning: string
  callName: string
  callArguments: string
  /** A hosted call that the provider submits for approval. */
  hostedName: string
  hostedUrl: string
  edit: string
  /** A person's reason for refusing every call that needs approval. Without it, the calls are approved. */
  rejection: string
  toolResult: string
  toolError: string
  /** Text, file name and file text of a tool result. Without a file, the tool returns a text. */
  toolMedia: { text?: string; filename?: string; fileText?: string }
  progress: string
  clientOutput: string
  mcpResult: string
  /** The server's question during its call. An empty string means no question. */
  mcpQuestion: string
  childWords: string
  childFailure: string
  /** The pieces of the last answer. */
  answer: readonly string[]
  refusal: string
  providerMessage: string
  providerCode: string
}

/** Optional features of a run. Each is tested alone, and all are tested together. */
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
  /** The shields on its way. None for credentials. */
  points: readonly ShieldPoint[]
  plant: Partial<Slots>
  /** Required for it to enter. */
  needs?: readonly Other[]
  /** Blocks it or changes its way in. */
  conflicts?: readonly Other[]
  /** No shield can check it, so it is withheld. */
  isUnseen?: true
  /** Other actions of the world. */
  scene?: 'credentials' | 'cut call' | 'child fails' | 'conclusion' | 'cancelled' | 'client fails'
}

const says = `It is ${canary}.`

/** Every way in, with its shields. */
export const entrances: Readonly<Record<string, Entrance>> = {
  'the user’s text': { points: ['input'], plant: { input: says } },
  'a text in parts': { points: ['input'], plant: { parts: [`It is ${halves[0]}`, `${halves[1]}.`] } },
  'the name of a file': { points: ['input'], plant: { fileName: `${canary}.txt` } },
  'the text of a file': { points: ['input'], plant: { fileText: says } },
  'the address of a picture': { points: ['input'], plant: { address: `https://a.example/${canary}.png` } },
  // Driven runs do not accept attachments.
  'an attachment': { points: ['input'], plant: { attachment: says }, conflicts: ['driven'] },
  steering: { points: ['input'], plant: { steering: says } },
  'steering that comes too late': {
    points: ['input'],
    plant: { steering: says },
    scene: 'conclusion',
    isUnseen: true,
  },
  'a reply': { points: ['input'], plant: { reply: says }, needs: ['an interactive run'] },
  // A driver sends it in its options.
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

/** The source of the provider's key. Credentials have one entrance for each. */
export const ways = ['option', 'function', 'environment', 'header', 'query'] as const

export type Way = (typeof ways)[number]

export interface Cell {
  entrance: string
  /** Null if a shield does not do the withholding. */
  shield: { point: ShieldPoint; action: 'block' | 'redact' } | null
  way: Way
  /** The active features. */
  on: readonly Other[]
}

/** Every entrance with every means that may withhold it: alone, with each feature, and with all features. */
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
    // `runSession` does not accept interactive runs.
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
