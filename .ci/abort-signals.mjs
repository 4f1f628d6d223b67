/**
 * Node keeps a signal of `AbortSignal.any` for good while anything listens to it, and libraries listen without an end: each connection to an
 * MCP server stayed in memory with its whole client.
 */
import { finding, isTest, lineAt } from './tree.mjs'

export function checkAbortSignals(tree) {
  const found = []
  for (const { path, text } of tree.files.values()) {
    if (isTest(path) || !/^(kernel|features)\//.test(path)) continue
    for (const { index } of text.matchAll(/\bAbortSignal\.any\(/g))
      found.push(finding(path, lineAt(text, index), 'may stay in memory for good: underFirstAbort or firstAbort of the kernel ends'))
  }
  return found
}
