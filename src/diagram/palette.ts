import type { Tone } from './look.js'

/** The light theme, which holds wherever styles are not read; `theme.ts` has the dark one. No two are the same. */
export const palette = {
  page: '#ffffff',
  card: '#fefefe',
  text: '#1f2328',
  quiet: '#59636e',
  line: '#848d97',
  main: '#0969da',
  /** Fills of compound states, by depth. */
  areas: ['#f4f7fb', '#e9eff6', '#dfe7f1'],
  taken: '#1a7f37',
  missed: '#cf222e',
  missedFill: '#ffe6e3',
} as const

export const toneColors: Readonly<Record<Tone, { fill: string; line: string }>> = {
  success: { fill: '#dafbe1', line: '#1a7f37' },
  limit: { fill: '#fff3d1', line: '#9a6700' },
  error: { fill: '#ffe6e3', line: '#cf222e' },
  neutral: { fill: '#eef1f4', line: '#59636e' },
}
