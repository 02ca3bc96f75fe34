import { truncate } from './cut.js'

const redacted = '[redacted]'

/** A trailing `…` marks a secret that was truncated. Every pattern runs in linear time. */
const secrets: [pattern: RegExp, replacement: string][] = [
  [/-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----[^]*?(?:-----END [A-Z ]{0,40}PRIVATE KEY-----|$)/g, redacted],
  // Passwords in URLs: scheme://user:password@host
  [/(:\/\/[^\s/?#:@]{0,256}:)[^\s/?#@]{1,512}(?:@|…)/g, `$1${redacted}@`],
  [
    new RegExp(
      // Matches at the start of a word, or after an escape such as \n in JSON text.
      String.raw`(?:(?<![\w-])|(?<=\\[bfnrt])|(?<=\\u[\da-fA-F]{4}))` +
        '(?:sk-|sk_|pk_|rk_|xai-|gsk_|gh[opsur]_|github_pat_|glpat-|xox[abeoprs]-|hf_|npm_|pypi-|AIza|AKIA|ASIA)' +
        String.raw`(?:[\w-]{12,}|[\w-]*…)`,
      'g',
    ),
    redacted,
  ],
  [/(?<![\w-])eyJ[\w-]{5,}(?:…|\.(?:[\w-]*…|[\w-]{5,}\.[\w-]*))/g, redacted],
  [/\b(bearer\s{1,4})(?:[\w.~+/=-]{6,}|[\w.~+/=-]*…)/gi, `$1${redacted}`],
  // password=…, "api_key": "…", and the same inside a JSON string.
  [
    new RegExp(
      '((?:api_?-?key|access_?-?key|secret_?-?key|private_?-?key|secret|token|password|passwd|passphrase|pwd|authorization)' +
        String.raw`\\?["']?\s{0,4}[:=]\s{0,4})(?!bearer\s)` +
        String.raw`(?:\\"[^"]*|"(?:[^"\\]|\\[^])*"?|'[^']*'?|[^\s"',;&}\]]+)`,
      'gi',
    ),
    `$1${redacted}`,
  ],
]

/** Longer texts are cut first to limit the running time. */
const longest = 8000

/** Removes API keys, bearer tokens, private keys and passwords in recognizable formats. */
export function scrubEvidence(text: string): string {
  return secrets.reduce((rest, [pattern, replacement]) => rest.replace(pattern, replacement), text)
}

/** Makes evidence safe to show and log: secrets removed, at most 600 characters. */
export function toEvidence(text: string): string {
  return truncate(scrubEvidence(truncate(text, longest)), 600)
}
