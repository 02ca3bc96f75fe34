import type { Tool } from './tool.js'
import type { ToolGroup } from './tool-source.js'
import type { ToolEntry } from './tool-set.js'

/** The tools that an entry of `tools` brings; what a source has to offer is not known before it is asked. */
type ToolsIn<Entry> = Entry extends { readonly group: ToolGroup<infer _Args, infer Member> }
  ? Member
  : Entry extends Tool
    ? Entry
    : Tool

/**
 * What the tools of an agent are called, and what the model gives each: `{ add: { a: number; b: number } }`. Where one
 * of them is not known by name, any name may come.
 */
export type ToolsOf<Entries extends readonly ToolEntry[]> =
  string extends NameOf<ToolsIn<Entries[number]>>
    ? Record<string, unknown>
    : { [Each in ToolsIn<Entries[number]> as NameOf<Each>]: ArgumentsOf<Each> }

type NameOf<Each> = Each extends { name: infer Name extends string } ? Name : string

type ArgumentsOf<Each> =
  Each extends Tool<infer _Input, infer _Context, infer _Name, infer Arguments> ? Arguments : unknown

/**
 * What `execute` of all these tools wants as `context`, together; unknown when none wants any.
 *
 * @example
 * const find = defineTool({
 *   name: 'find',
 *   description: 'Finds.',
 *   input: z.object({}),
 *   execute: (_input, { context }: ToolExecution<{ db: string }>) => context.db,
 * })
 * const context: ContextOf<[typeof find]> = { db: 'people' } // what `run` demands
 */
export type ContextOf<Entries extends readonly ToolEntry[]> =
  Wish<ToolsIn<Entries[number]>> extends (context: infer Context) => void ? Context : unknown

/** As a parameter, so that the wishes of several tools are all to be met. */
type Wish<Each> =
  Each extends Tool<infer _Input, infer Context, infer _Name, infer _Arguments>
    ? (context: Context) => void
    : never

/** Carries the `context` that tools want, from an agent to what runs it. */
export interface ContextCarrier<Context> {
  /** For the type checker only. */
  readonly '~context'?: () => Context
}

/** Options with the `context` that tools want; any, or none, where no tool wants one. */
export type WithContext<Options, Context> = unknown extends Context
  ? Options & { context?: unknown }
  : undefined extends Context
    ? Options & { context?: Context }
    : Options & { context: Context }

/** Whether a run may go without a `context`. */
export type IsContextFree<Context> = undefined extends Context ? true : false

/** The options of a run: with `context` where tools want one, which the compiler's message names, and optional where none does. */
export type OptionsFor<Options, Context> = unknown extends Context
  ? [options?: Options]
  : undefined extends Context
    ? [options?: Options & { context?: Context }]
    : [optionsWithContext: Options & { context: Context }]
