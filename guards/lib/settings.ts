/** A halt ends the run in ERROR, or in PAUSED, from which `resume()` resets that guard alone. */
export type OnHalt = 'error' | 'pause'

/** What a guard does with a repeated call: halt the run, or refuse the call and halt at its second refusal. */
export type OnRepeat = 'halt' | 'block'

/** The type of a guard setting, as plain data. The configuration's checks are built from it. */
export type Setting =
  | 'flag'
  /** One of these words. */
  | readonly [string, ...string[]]
  /** An integer, unless `of` names a unit. */
  | { from: number; to?: number; of?: 'milliseconds' | 'share' }
  /** The same, or `null` for never. */
  | { from: number; isNever: true }
  /** Nested settings; `null` disables them if allowed. */
  | { has: { readonly [key: string]: Setting }; canBeOff?: true }

export type Settings<Config> = { readonly [Key in keyof Config]: Setting }

export const onHalt: Setting = ['error', 'pause']
export const onRepeat: Setting = ['halt', 'block']
