/* The module, assembled from its parts once for each interpreter. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "core.h"
#include "objects.h"

static int module_exec(PyObject *module) {
    CoreState *state = core_of_module(module);
    state->codec.values = &state->values;
    int failed = values_add(module, &state->values) < 0 || codec_add(module, &state->codec) < 0 ||
                 records_add(module, &state->records) < 0 || methods_add(module) < 0 || columns_add(module) < 0;
    return failed ? -1 : log_add(module);
}

static int module_traverse(PyObject *module, visitproc visit, void *arg) {
    CoreState *state = core_of_module(module);
    int stopped = visit_all(state->codec.owned, CODEC_OBJECTS, visit, arg);
    return stopped ? stopped : visit_all(state->records.owned, RECORDS_OBJECTS, visit, arg);
}

static int module_clear(PyObject *module) {
    CoreState *state = core_of_module(module);
    values_forget(&state->values);
    codec_forget(&state->codec);
    clear_all(state->records.owned, RECORDS_OBJECTS);
    return 0;
}

static void module_free(void *module) {
    module_clear((PyObject *)module);
}

static PyModuleDef_Slot module_slots[] = {
    {Py_mod_exec, module_exec},
#if PY_VERSION_HEX >= 0x030C0000
    {Py_mod_multiple_interpreters, Py_MOD_PER_INTERPRETER_GIL_SUPPORTED},
#endif
#if PY_VERSION_HEX >= 0x030D0000
    {Py_mod_gil, Py_MOD_GIL_NOT_USED}, /* see core.h */
#endif
    {0, NULL},
};

struct PyModuleDef core_module = {
    PyModuleDef_HEAD_INIT,
    .m_name = CORE_NAME,
    .m_doc = "The C core: what values, codec, records, columns and log run in C.",
    .m_size = sizeof(CoreState),
    .m_slots = module_slots,
    .m_traverse = module_traverse,
    .m_clear = module_clear,
    .m_free = module_free,
};

PyMODINIT_FUNC PyInit_extension(void) {
    return PyModuleDef_Init(&core_module);
}
