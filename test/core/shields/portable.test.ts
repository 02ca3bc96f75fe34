import { build } from 'esbuild'

it('shields bundle for the browser: no built-in of Node, and no client unless it is used', async () => {
  const { outputFiles } = await build({
    entryPoints: ['src/core/shields/index.ts'],
    bundle: true,
    write: false,
    format: 'esm',
    platform: 'browser',
    logLevel: 'silent',
  })
  const code = outputFiles.map(({ text }) => text).join('\n')
  expect(code).toContain('BEGIN UNSAFE CONTENT CATEGORIES')
  expect(code).not.toMatch(/from\s*["']node:|\bBuffer\b|\bprocess\./)
  expect(code.length).toBeLessThan(100_000)
})
