/*
 * A program that Python runs in, as an application server does: host MODE SCRIPT.
 *
 *   plain      the script, in the interpreter that starts with the program
 *   threads    work() of the script, called by threads that C made (PyGILState_Ensure)
 *   sub        the script, in a second interpreter of the same thread
 *   own-gil    the script in two interpreters at once, each with a lock of its own (3.12+)
 *   workers    work() in two processes, forked once the script was read
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char *script;

static void run_script(void)
{
	if (PyRun_SimpleString(script))
		exit(3);
}

static void call_work(void)
{
	PyObject *module = PyImport_AddModule("__main__");
	PyObject *result = PyObject_CallMethod(module, "work", NULL);

	if (!result) {
		PyErr_Print();
		exit(4);
	}
	Py_DECREF(result);
}

static void *thread(void *arg)
{
	PyGILState_STATE state = PyGILState_Ensure();

	call_work();
	PyGILState_Release(state);
	return NULL;
}

static void in_threads(void *(*start)(void *))
{
	PyThreadState *saved = PyEval_SaveThread();
	pthread_t threads[2];

	for (int i = 0; i < 2; i++)
		if (pthread_create(&threads[i], NULL, start, NULL))
			exit(5);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	PyEval_RestoreThread(saved);
}

static void in_second_interpreter(void)
{
	PyThreadState *first = PyThreadState_Get(), *second = Py_NewInterpreter();

	if (!second)
		exit(6);
	run_script();
	call_work();
	Py_EndInterpreter(second);
	PyThreadState_Swap(first);
}

#if PY_VERSION_HEX >= 0x030c0000
static void *own_interpreter(void *arg)
{
	PyInterpreterConfig config = {
		.check_multi_interp_extensions = 1,
		.allow_threads = 1,
		.gil = PyInterpreterConfig_OWN_GIL,
	};
	PyThreadState *state = NULL;

	/* A thread state to make the other from. */
	PyGILState_STATE outer = PyGILState_Ensure();
	PyThreadState *first = PyThreadState_Get();

	if (PyStatus_Exception(Py_NewInterpreterFromConfig(&state, &config)))
		exit(7);
	run_script();
	call_work();
	Py_EndInterpreter(state);
	PyThreadState_Swap(first);
	PyGILState_Release(outer);
	return NULL;
}
#endif

static void in_workers(void)
{
	for (int i = 0; i < 2; i++) {
#if PY_VERSION_HEX >= 0x03070000
		PyOS_BeforeFork();
#endif
		if (fork() == 0) {
#if PY_VERSION_HEX >= 0x03070000
			PyOS_AfterFork_Child();
#else
			PyOS_AfterFork();
#endif
			call_work();
			_exit(0);
		}
#if PY_VERSION_HEX >= 0x03070000
		PyOS_AfterFork_Parent();
#endif
	}
	while (wait(NULL) > 0)
		;
}

int main(int argc, char **argv)
{
	const char *mode = argc > 2 ? argv[1] : "";
	FILE *file = argc > 2 ? fopen(argv[2], "r") : NULL;
	size_t size = 1 << 16;

	script = calloc(1, size);
	if (!file || !script || !fread(script, 1, size - 1, file))
		return 2;
	Py_Initialize();
	if (strcmp(mode, "sub") == 0) {
		in_second_interpreter();
#if PY_VERSION_HEX >= 0x030c0000
	} else if (strcmp(mode, "own-gil") == 0) {
		in_threads(own_interpreter);
#endif
	} else {
		run_script();
		if (strcmp(mode, "threads") == 0)
			in_threads(thread);
		else if (strcmp(mode, "workers") == 0)
			in_workers();
		else
			call_work();
	}
	return Py_FinalizeEx() ? 8 : 0;
}
