/**
 * The permission chain: policies from top to bottom, the first opinion wins, nobody's opinion means ask. The list at the end of this file
 * is the whole decision; what rules look like is in `rules.ts`, what control files are in `control-files.ts`.
 */
import { sep } from 'node:path'
import { homeOfUser } from '../../kernel/index.ts'
import { type FileAccess, isInside, isProtected, plansDir, type Surroundings, type ToolExecution } from '../tools/index.ts'
import type { Approval, PermissionMode } from './contract.ts'
import { isControlFile, type WorkTree } from './control-files.ts'
import { allows, firstOf, mayConcern, meansPath, partsOf, type Rule, type RuledCall, ruleFor, rulesFor } from './rules.ts'

/** What is decided about. */
interface JudgedCall extends Surroundings {
  readonly tool: string
  readonly execution: ToolExecution
  readonly mode: PermissionMode
  /** Rules of the configuration, in order. */
  readonly rules: readonly Rule[]
  /** Rules of the configuration are missing because they cannot be read. */
  readonly unsure: boolean
  /** Approvals remembered for the session. */
  readonly remembered: readonly Approval[]
  /** The git work tree around the working directory; looked up at the first call. */
  readonly workTree: () => Promise<WorkTree | undefined>
}

/** What a policy sees of a call: also its parts, and the rules for its tool. */
interface CallFacts extends JudgedCall, RuledCall {
  readonly execution: ToolExecution
}

/** `deny` carries the text for the model. */
type Opinion = { readonly kind: 'approve' } | { readonly kind: 'ask' } | { readonly kind: 'deny'; readonly text: string }

/** One rule of judgement; undefined means no opinion. */
type Policy = (facts: CallFacts) => Opinion | undefined | Promise<Opinion | undefined>

const approve: Opinion = { kind: 'approve' }
const ask: Opinion = { kind: 'ask' }

/** Nobody is there to answer in auto mode, so questions to the user are denied. */
const questionInAutoMode: Policy = ({ mode, tool }) =>
  mode === 'auto' && tool === 'AskUserQuestion'
    ? { kind: 'deny', text: 'Questions are not possible in auto mode: decide on your own with what you know.' }
    : undefined

/** The user's deny rules win over every mode and every approval. Those of Read and Write hold for files that other tools touch, too. */
const denyRule: Policy = async facts => {
  const rule = (await ruleFor(facts, 'deny')) ?? (await deniedAccess(facts))
  if (!rule) return undefined
  const reason = rule.reason === undefined ? '' : ` Reason: ${rule.reason}`
  return { kind: 'deny', text: `A permission rule of the user forbids this call of ${facts.tool}.${reason}` }
}

/** A rule that cannot be read may be one that denies: until it is corrected, nothing goes unasked. */
const unreadableRules: Policy = ({ unsure }) => (unsure ? ask : undefined)

/** What the user approved for the session needs no second answer. */
const rememberedApproval: Policy = ({ remembered, tool, execution }) =>
  remembered.some(approval => approval.tool === tool && approval.argument === execution.approval_argument) ? approve : undefined

/** A command that does not tell what it runs may run what a rule denies. */
const uncertainUnderDenyRule: Policy = async facts => ((await mayConcern(facts, 'deny')) ? ask : undefined)

/** An agent's plans are its own: writing them changes nothing else. */
const ownPlan: Policy = facts => {
  if (facts.tool !== 'Write' && facts.tool !== 'Edit') return undefined
  const touched = pathsOf(facts)
  const own = plansDir(facts.agent_dir)
  return touched.length > 0 && touched.every(({ path, shared }) => isInside(path, own) && !shared) ? approve : undefined
}

/** Auto mode approves everything that no deny rule forbids. */
const autoMode: Policy = ({ mode }) => (mode === 'auto' ? approve : undefined)

/** The user's ask rules: asked in manual and in yolo mode. */
const askRule: Policy = async facts => ((await ruleFor(facts, 'ask')) || (await mayConcern(facts, 'ask')) ? ask : undefined)

/** The user's allow rules: together they cover every part of the call. */
const allowRules: Policy = async facts => ((await allows(facts)) ? approve : undefined)

/** Files that usually hold credentials, and what belongs to the server itself, are never touched unasked. */
const protectedPath: Policy = async facts => ((await firstOf(pathsOf(facts), ({ path }) => isProtected(path, facts))) ? ask : undefined)

/** Files that make other programs run code (of git, of editors) are never touched unasked. */
const controlFile: Policy = async facts => ((await firstOf(pathsOf(facts), access => isControlFile(access, facts))) ? ask : undefined)

/** Yolo mode approves what the earlier policies did not hold back. */
const yoloMode: Policy = ({ mode }) => (mode === 'yolo' ? approve : undefined)

/** Tools that only read, that ask on their own, or that allow less than before. */
const safe = new Set(
  (
    'Read Grep Glob ReadMediaFile TodoList TaskList TaskOutput WaitFor CronList WebSearch FetchURL Agent AgentSwarm AskUserQuestion ' +
    'Skill EnterPlanMode ExitPlanMode CreateGoal GetGoal SetGoalBudget UpdateGoal select_tools'
  ).split(' ')
)
const safeTool: Policy = ({ tool }) => (safe.has(tool) ? approve : undefined)

/** Changes below the working directory are undoable when git watches over it, unless the file has another name elsewhere. */
const workTreeWrite: Policy = async facts => {
  if ((facts.tool !== 'Write' && facts.tool !== 'Edit') || sep !== '/') return undefined
  const written = pathsOf(facts).filter(({ kind }) => kind === 'write' || kind === 'readwrite')
  if (written.length === 0 || !written.every(({ path, shared }) => isInside(path, facts.cwd) && !shared)) return undefined
  return (await facts.workTree()) ? approve : undefined
}

const chain: readonly Policy[] = [
  questionInAutoMode,
  denyRule,
  unreadableRules,
  rememberedApproval,
  uncertainUnderDenyRule,
  ownPlan,
  autoMode,
  askRule,
  allowRules,
  protectedPath,
  controlFile,
  yoloMode,
  safeTool,
  workTreeWrite
]

export async function decide(call: JudgedCall): Promise<Opinion> {
  const facts: CallFacts = { ...call, own: rulesFor(call.tool, call.rules), parts: partsOf(call.execution) }
  for (const policy of chain) {
    const said = policy(facts)
    const opinion = said instanceof Promise ? await said : said
    if (opinion) return opinion
  }
  return ask
}

/** Files that the call touches. */
function pathsOf({ execution }: CallFacts): FileAccess[] {
  return execution.accesses.filter(access => 'path' in access)
}

/** The deny rule of Read or Write for a file of the call. What a search finds is filtered by the search itself (`ToolAuthority.readable`). */
async function deniedAccess(facts: CallFacts): Promise<Rule | undefined> {
  const { rules, cwd } = facts
  for (const { kind, path, recursive } of pathsOf(facts)) {
    if (recursive || kind === 'readwrite') continue
    const { deny } = rulesFor(kind === 'write' ? 'Write' : 'Read', rules)
    const rule = await firstOf(deny, denying => meansPath(denying, path, { cwd, home: homeOfUser() }))
    if (rule) return rule
  }
  return undefined
}
