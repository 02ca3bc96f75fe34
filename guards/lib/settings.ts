/** A halt ends the run in ERROR or PAUSED. In PAUSED, `resume()` resets only the guard that halted the run. */
export type OnHalt = 'error' | 'pause'

/** `halt` halts the run. `block` refuses the call, and halts if it is repeated again. */
export type OnRepeat = 'halt' | 'block'

/** The type of a guard setting, as plain data from which the configuration checks are built. */
export type Setting =
  | 'flag'
  /** A string from this list. */
  | readonly [string, ...string[]]
  /** An integer, unless `of` specifies a unit. */
  | { from: number; to?: number; of?: 'milliseconds' | 'share' }
  /** An integer, or `null` for never. */
  | { from: number; isNever: true }
  /** Nested settings. `null` disables them if allowed. */
  | { has: { readonly [key: string]: Setting }; canBeOff?: true }

export type Settings<Config> = { readonly [Key in keyof Config]: Setting }

export const onHalt: Setting = ['error', 'pause']
export const onRepeat: Setting = ['halt', 'block']

export interface HaltConfig {
  /** How to halt: `pause` pauses the run, `error` ends it in `ERROR`. Defaults to `error`. */
  onHalt: OnHalt
  /** Whether to make one request without tools for a concluding answer before a pause. Defaults to true. */
  lastWords?: boolean
}

export const haltSettings = { onHalt, lastWords: 'flag' } satisfies Settings<HaltConfig>
export const haltDefaults: HaltConfig = { onHalt: 'error', lastWords: true }
