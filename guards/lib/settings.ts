/** What a halt does: end the run in ERROR, or keep it in PAUSED, from where `resume()` resets that guard alone. */
export type OnHalt = 'error' | 'pause'

/**
 * What a guard does with a call that repeats: halt the run, or refuse the call with a result that says so and halt at
 * its second refusal.
 */
export type OnRepeat = 'halt' | 'block'

/** What a setting of a guard may be, as plain data: the configuration's checks are built from it. */
export type Setting =
  /** `true` or `false`. */
  | 'flag'
  /** One of these words. */
  | readonly [string, ...string[]]
  /** A number: whole, unless `of` says what it is a number of. */
  | { from: number; to?: number; of?: 'milliseconds' | 'share' }
  /** The same, or `null` for never. */
  | { from: number; isNever: true }
  /** Settings in a setting; `null` switches it off where it says so. */
  | { has: { readonly [key: string]: Setting }; canBeOff?: true }

/** One for each key. */
export type Settings<Config> = { readonly [Key in keyof Config]: Setting }

export const onHalt: Setting = ['error', 'pause']
export const onRepeat: Setting = ['halt', 'block']
